"""Thread that queues again the runs that no worker took, or whose worker died.

Every worker runs it while it has a free slot; two workers that send the same run do no harm,
because the lease decides. Every `COLLECT_SECONDS` it removes artifacts that nothing refers to.
"""

from __future__ import annotations

import logging
import time

from webapp.artifacts.collecting import collect
from webapp.experiments.external_engines import fail_silent_runs
from webapp.experiments.scheduling.dispatch import dispatch
from webapp.experiments.selectors import sweepable_runs
from webapp.registry.model_files.folders import remove_strays
from workers.jobs.job_thread import JobThread
from workers.runs.active_runs import active_supervisors

logger = logging.getLogger(__name__)

COLLECT_SECONDS = 3600.0


class RequeueJob(JobThread):
    poll_seconds = 2.0

    def __init__(self, slots: int):
        super().__init__()
        self.slots = slots
        self._collected = time.monotonic()

    def do_one(self) -> bool:
        self.sweep()
        self._collect_if_due()
        return False

    def _collect_if_due(self) -> None:
        if time.monotonic() - self._collected < COLLECT_SECONDS:
            return
        self._collected = time.monotonic()
        try:
            collect()
            remove_strays()
        except OSError as error:
            logger.warning("artifacts cannot be collected: %s", error)

    def sweep(self) -> int:
        """Sends the due runs if this worker has a free slot; returns how many it sent."""
        fail_silent_runs()
        free_slots = self.slots - len(active_supervisors())
        return sum(map(dispatch, sweepable_runs(free_slots))) if free_slots > 0 else 0
