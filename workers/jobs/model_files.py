"""Thread that stores the files of model versions: each file becomes an artifact, known by its
content, so that it outlives the run's directory.

Waits: `RETRY_SECONDS` before it retries a file that could not be stored.
"""

from __future__ import annotations

import logging
import time

from webapp.registry.services import NotStored, store_next
from workers.jobs.job_thread import JobThread

logger = logging.getLogger(__name__)

RETRY_SECONDS = 600.0


class ModelFileJob(JobThread):
    poll_seconds = 5.0

    def __init__(self) -> None:
        super().__init__()
        self._retry_at: dict[int, float] = {}
        """When to retry, in seconds of `time.monotonic()`, by the id of the file."""

    def do_one(self) -> bool:
        now = time.monotonic()
        self._retry_at = {pk: moment for pk, moment in self._retry_at.items() if moment > now}
        try:
            return store_next(self._retry_at) is not None
        except NotStored as error:
            logger.warning("%s; retrying in %.0f s", error, RETRY_SECONDS)
            self._retry_at[error.file.pk] = now + RETRY_SECONDS
            return True
