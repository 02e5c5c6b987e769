"""The Celery app of a worker: `celery -A workers.app worker -P threads`.

It is the web side's app plus what only a worker does: the task, the requeue thread, the jobs, and
the shutdown. On SIGTERM the engines make checkpoints and their runs are given back; a worker that
has not ended within `close_seconds` kills its engines and itself.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from celery import bootsteps, signals

from engine.config import tracing
from engine.config.deadlines import ENGINE_STOP
from engine.resources.child_processes import restore_sigchld
from engine.resources.loopback import except_loopback
from webapp.celery import app

logger = logging.getLogger(__name__)

# Before the pool: Celery has no entry point of ours.
restore_sigchld()
except_loopback()
app.conf.include = ["workers.tasks"]


class JobsStep(bootsteps.StartStopStep):
    """Starts the requeue thread and the jobs with the worker's pool."""

    requires = {"celery.worker.components:Pool"}

    def start(self, worker: Any) -> None:
        from workers import metrics
        from workers.jobs.alerts import AlertDeliveryJob, AlertLevelJob
        from workers.jobs.exports import ExportCleanupJob, ExportJob
        from workers.jobs.model_files import ModelFileJob
        from workers.jobs.model_imports import ModelImportJob
        from workers.jobs.reports import ReportJob
        from workers.jobs.requeue import RequeueJob
        from workers.jobs.retention import RetentionJob
        from workers.jobs.workspace_imports import WorkspaceImportJob

        metrics.serve()
        tracing.start("grove-worker")
        RequeueJob(worker.concurrency).start()
        ModelFileJob().start()
        ModelImportJob().start()
        WorkspaceImportJob().start()
        ReportJob().start()
        ExportJob().start()
        ExportCleanupJob().start()
        AlertDeliveryJob().start()
        AlertDeliveryJob().start()  # one may wait for a receiver that does not answer
        AlertLevelJob().start()
        RetentionJob().start()


app.steps["worker"].add(JobsStep)


@signals.worker_init.connect
def refuse_to_start(**_: Any) -> None:
    """Ends a worker, before it takes a run, if its own settings cannot be used, or the database was
    migrated by a newer version."""
    from webapp.config.environment import SettingError
    from webapp.operations.processes import name_connections
    from webapp.operations.schema import refuse_newer_at_start
    from workers.settings import metrics_address

    name_connections("worker")
    try:
        metrics_address()
    except SettingError as error:
        raise SystemExit(str(error)) from None
    refuse_newer_at_start()


@signals.worker_shutdown.connect
def end_traces(**_: Any) -> None:
    """Sends the spans that are left."""
    tracing.stop()


@signals.worker_shutting_down.connect
def close(**_: Any) -> None:
    """Signals every run supervisor to shut down, at the first signal to end."""
    from workers.runs.active_runs import closing

    if not closing.is_set():
        closing.set()
        last_resort = threading.Timer(close_seconds(), _end_by_force)
        last_resort.daemon = True
        last_resort.start()


def close_seconds() -> float:
    """Returns the deadline for a worker's end: longer than that of its engines."""
    return ENGINE_STOP.seconds + 30.0


def _end_by_force() -> None:
    from workers.runs.active_runs import active_supervisors

    logger.error("the worker did not end within %.0f s; %s", close_seconds(), ENGINE_STOP.remedy)
    for supervisor in active_supervisors():
        if supervisor.engine is not None:
            supervisor.engine.kill()
    os._exit(1)
