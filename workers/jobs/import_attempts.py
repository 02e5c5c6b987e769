"""One worker's attempt at an import: its scratch directory, lease, deadline and failures.

Waits: for a process with limits until the import's deadline; an import that is cancelled or deleted
ends within `job_thread.renew_seconds`, that of a worker that shuts down is given back.

Invariants: the scratch directory is removed however the attempt ends; no process outlives the
attempt that it was started for.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Generic, Self, TypeVar

from django.conf import settings
from django.utils import timezone

from engine.config.deadlines import JOB_LEASE
from webapp import queued_imports
from webapp.disk import FULL, cause_of
from webapp.queued_imports import ImportLost, QueuedImport
from workers.jobs.heartbeat import Heartbeat
from workers.jobs.limited_engine import LimitedEngine
from workers.runs.active_runs import closing

logger = logging.getLogger(__name__)

_OUT_OF_MEMORY = ("Cannot allocate memory", "Unable to allocate", "Memory allocation", "bad_alloc")
_POLL_SECONDS = 0.1
One = TypeVar("One", bound=QueuedImport)


class ImportFailed(Exception):
    """The import cannot be completed; the message is its first cause. If it `is_final`, another
    attempt would fail for the same cause."""

    def __init__(self, cause: str, *, is_final: bool = False):
        self.is_final = is_final
        super().__init__(cause)


class ShuttingDown(Exception):
    """The worker shuts down."""


class ImportAttempt(Generic[One]):
    """The block in which a worker does an import that it has taken; `kind` names its scratch
    directory, which is on the file system of the uploads, whose collector removes what a dead
    worker left and nobody retried."""

    def __init__(self, one: One, kind: str):
        self.one, self.kind = one, kind
        self.scratch = settings.UPLOADS_DIR / f"{kind}-{one.pk}-{one.fencing}"
        self.progress, self.phase = 0.0, "Starting"
        self._heartbeat = Heartbeat(kind, self._renew, ImportLost)

    def __enter__(self) -> Self:
        self._remove_scratch()
        self.scratch.mkdir(parents=True)
        self._heartbeat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._heartbeat.stop()
        self._remove_scratch()

    def report(self, progress: float, phase: str) -> None:
        """Has the heartbeat record the progress."""
        self.progress, self.phase = progress, phase

    def status_of(self, process: LimitedEngine, watch: Callable[[], None]) -> int:
        """Returns the exit status of the process; calls `watch` while it runs. Kills it if the
        import ends before, with what `wait` or `watch` raises."""
        try:
            while (status := process.poll()) is None:
                self.wait(_POLL_SECONDS)
                watch()
        finally:
            if process.poll() is None:
                process.kill()
        return status

    def wait(self, seconds: float) -> None:
        """Waits; raises if the import is not this worker's any more, late, or the worker ends."""
        if closing.wait(seconds):
            raise ShuttingDown
        if self._heartbeat.is_lost.is_set():
            raise ImportLost
        if self.one.deadline is not None and timezone.now() > self.one.deadline:
            minutes = settings.IMPORT_SECONDS / 60
            raise ImportFailed(
                f"it did not finish within {minutes:.0f} minutes; retry, or have the server's "
                "operator raise GROVE_IMPORT_MINUTES"
            )

    def _renew(self) -> None:
        queued_imports.renew(self.one, self.progress, self.phase)

    def _remove_scratch(self) -> None:
        for path in settings.UPLOADS_DIR.glob(f"{self.kind}-{self.one.pk}-*"):
            shutil.rmtree(path, ignore_errors=True)


def work(one: One, run: Callable[[One], None], fail: Callable[..., None]) -> None:
    """Runs an attempt to its end: an import that it does not complete is failed, with its first
    cause, given back, or somebody else's."""
    try:
        run(one)
    except ImportLost:
        logger.warning(
            "import %s: another worker has it, or it was cancelled; %s", one.pk, JOB_LEASE.remedy
        )
    except ShuttingDown:
        queued_imports.give_back(one)
    except (ImportFailed, OSError, ValueError) as error:
        cause = cause_of(error)
        logger.warning("import %s: %s", one.pk, cause)
        with suppress(ImportLost):
            fail(one, cause, is_final=getattr(error, "is_final", False))


def limit_failure(status: int, last: str, limits: Mapping[str, int]) -> ImportFailed | None:
    """Returns the cause of a process that ended with this status at a limit, or of the machine's
    own, after the last line of its errors; None if it ended for another reason. All of them can be
    retried."""
    if status == -signal.SIGXCPU:
        minutes = limits["cpu_seconds"] / 60
        return ImportFailed(
            f"it took more than {minutes:.0f} minutes of CPU time; have the server's operator "
            "raise GROVE_IMPORT_CPU_MINUTES, then retry"
        )
    if last.startswith("MemoryError") or any(word in last for word in _OUT_OF_MEMORY):
        return ImportFailed(
            f"it needs more than {limits['memory_bytes'] >> 20} MiB of memory; have the server's "
            "operator raise GROVE_IMPORT_MEMORY_MIB, then retry"
        )
    if status == -signal.SIGXFSZ or os.strerror(errno.EFBIG) in last:
        return ImportFailed(
            f"a file of the result is larger than {limits['file_bytes']} bytes; have the server's "
            "operator raise GROVE_MODEL_FILE_MIB, then retry"
        )
    if os.strerror(errno.ENOSPC) in last or "the disk is full" in last:
        return ImportFailed(FULL)
    if status < 0:
        return ImportFailed(
            f"its process was killed by signal {-status}, perhaps because the machine has no "
            "memory left; retry"
        )
    return None
