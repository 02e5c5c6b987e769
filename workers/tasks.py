"""The task behind every message of the queue: supervise this run if it is due."""

from __future__ import annotations

import uuid

from webapp.celery import RUN_TASK, app
from workers.runs.active_runs import supervise_run


@app.task(name=RUN_TASK)
def run(run_id: str) -> None:
    """Supervises the run if no worker does. A repeated or late message finds the lease taken."""
    supervise_run(uuid.UUID(run_id))
