"""The task behind every message of the queue: look at this run."""

from __future__ import annotations

import uuid

from webapp.config.celery import RUN_TASK, app
from workers.runs.active_runs import keep_run


@app.task(name=RUN_TASK)
def run(run_id: str) -> None:
    """Keep the run if nobody does. A doubled or late message finds the lease taken: no harm."""
    keep_run(uuid.UUID(run_id))
