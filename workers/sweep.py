"""Sends runs to the queue again that no worker took, or whose worker died.

Every worker sweeps, as long as it has a slot free; that two of them send the same run does no
harm, because the lease decides.
"""

from __future__ import annotations

import logging
import threading

from django.db import Error, connection

from webapp.experiments.dispatch import dispatch
from webapp.experiments.outside import fail_silent_runs
from webapp.experiments.selectors import sweepable_runs
from workers.duty import closing, kept

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 2.0


class Sweep(threading.Thread):
    """Runs in a worker until the worker closes."""

    def __init__(self, slots: int):
        super().__init__(name="sweep", daemon=True)
        self.slots = slots

    def run(self) -> None:
        while True:
            try:
                self.sweep()
            except Error as error:
                logger.warning("sweep: waiting for the database: %s", error)
                connection.close()
            if closing.wait(SWEEP_SECONDS):
                return

    def sweep(self) -> int:
        """Send what is due, if there is room for it here; returns how many runs were sent."""
        fail_silent_runs()
        if len(kept()) >= self.slots:
            return 0
        return sum(dispatch(run_id) for run_id in sweepable_runs())
