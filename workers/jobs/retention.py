"""Thread that applies the workspaces' policies once a day, removes the folders that a deletion left
behind when its process ended, and old alerts and notices.

Waits: `RETRY_SECONDS` before it tries again to remove what could not be removed, `PRUNE_SECONDS`
between two removals of old alerts.
"""

from __future__ import annotations

import time

from webapp.retention.policy import apply_next
from webapp.retention.pruning import prune
from webapp.retention.services import remove_next_folders
from workers.jobs.job_thread import JobThread

RETRY_SECONDS = 600.0
PRUNE_SECONDS = 21_600.0


class RetentionJob(JobThread):
    poll_seconds = 60.0

    def __init__(self) -> None:
        super().__init__()
        self._removed = self._pruned = float("-inf")

    def do_one(self) -> bool:
        now = time.monotonic()
        if now - self._removed >= RETRY_SECONDS:
            self._removed = now
            remove_next_folders()
        if now - self._pruned >= PRUNE_SECONDS:
            self._pruned = now
            prune()
        return apply_next()
