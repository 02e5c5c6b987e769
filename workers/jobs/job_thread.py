"""Base class of a worker's job threads, which look for work in the database alongside its runs.

Each kind has a thread of its own, because a run holds its slot of the pool for hours. The database
is the queue; several workers each take different items.

Invariant: no failure of one item ends its thread.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod

from django.db import Error, connection

from engine.config.deadlines import JOB_LEASE
from workers import metrics
from workers.runs.active_runs import closing

logger = logging.getLogger(__name__)


def renew_seconds() -> float:
    """Returns how often a job renews its lease: every 2 s, and more often only where
    `deadlines.JOB_LEASE` is shorter than by default."""
    return min(2.0, JOB_LEASE.seconds / 15)


class JobThread(threading.Thread, ABC):
    """Runs in a worker until the worker shuts down, and polls every `poll_seconds`."""

    poll_seconds = 1.0

    def __init__(self) -> None:
        super().__init__(name=type(self).__name__.lower(), daemon=True)

    def run(self) -> None:
        while not closing.is_set():
            try:
                while not closing.is_set() and self._did_one():
                    pass
            except Error as error:
                logger.warning("%s: waiting for the database: %s", self.name, error)
            except Exception:
                metrics.job_failures.labels(self.name).inc()
                logger.exception("%s: an item failed", self.name)
            connection.close()
            closing.wait(self.poll_seconds)

    def _did_one(self) -> bool:
        began = time.monotonic()
        did = self.do_one()
        if did:
            metrics.jobs.labels(self.name).observe(time.monotonic() - began)
        return did

    @abstractmethod
    def do_one(self) -> bool:
        """Does the next due item; returns False if nothing is left."""
