"""Thread that checks and imports the uploaded zips of workspaces, one at a time, each in a process
with limits of memory, CPU time and file size: the zip is a stranger's.

Waits: for the process, until the import's deadline (`import_attempts`).
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from typing import Any

from django.conf import settings

from webapp.offboarding.imports import states
from webapp.offboarding.models import ImportRequest
from webapp.queued_imports import ImportLost
from workers.jobs import workspace_import_process
from workers.jobs.import_attempts import ImportAttempt, ImportFailed, limit_failure, work
from workers.jobs.job_thread import JobThread
from workers.jobs.limited_engine import LimitedEngine

logger = logging.getLogger(__name__)


class WorkspaceImportJob(JobThread):
    def do_one(self) -> bool:
        one = states.take()
        if one is None:
            return False
        logger.info("import %s of a workspace: %s", one.pk, one)
        work(one, _run, states.fail)
        return True


def _run(one: ImportRequest) -> None:
    with ImportAttempt(one, "workspace-import") as attempt:
        limits = {
            "memory_bytes": settings.IMPORT_MEMORY_BYTES,
            "cpu_seconds": int(settings.IMPORT_CPU_SECONDS),
            "file_bytes": max(settings.ARTIFACT_MOST_BYTES.values()),
        }
        # It is a part of the site: it needs the database, and so the worker's own environment.
        process = LimitedEngine(
            attempt.scratch,
            [str(one.pk), str(one.fencing)],
            limits,
            dict(os.environ),
            module=workspace_import_process.__name__,
        )

        def watch() -> None:
            last = _last(process)
            if "phase" in last:
                attempt.report(last["progress"], last["phase"])

        status = attempt.status_of(process, watch)
        if status != 0:
            raise _failure(status, process, limits)


def _failure(status: int, process: LimitedEngine, limits: dict[str, int]) -> Exception:
    """Returns the first cause of a process that ended with this status."""
    last = _last(process)
    if status == workspace_import_process.EXIT_LOST:
        return ImportLost()
    if status == workspace_import_process.EXIT_REFUSED and "error" in last:
        return ImportFailed(last["error"], is_final=last["is_final"])
    errors = process.stderr()
    last_line = errors.splitlines()[-1].strip() if errors else ""
    logger.error("the import of a workspace ended with status %s: %s", status, errors)
    cause = last_line or f"its process ended with status {status}"
    return limit_failure(status, last_line, limits) or ImportFailed(f"{cause}; retry")


def _last(process: LimitedEngine) -> dict[str, Any]:
    """Returns the last whole line of the process's output."""
    for line in reversed(process.stdout().splitlines()):
        with suppress(ValueError):
            return json.loads(line)
    return {}
