"""Thread that does imports of models, one at a time: converts a GGUF file, or a pretrained model
that it downloads, and registers the result.

The conversion is a command of the engine with limits of memory, CPU time and file size, in a
scratch directory that is removed however it ends. Waits: for the engine and for its turn to be
checked, both until the import's deadline; an import that is cancelled or deleted ends within
`renew_seconds`, that of a worker that shuts down is given back.

Invariant: no engine outlives the import that it was started for.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from engine.config.deadlines import JOB_LEASE
from webapp.artifacts.selectors import room_of
from webapp.artifacts.store import link_or_copy, local_path
from webapp.disk import FULL, cause_of
from webapp.errors import Queued
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.layout import Layout
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_imports import states
from webapp.registry.model_imports.registering import check, register, take_record
from webapp.registry.models import ImportKind, ModelImport
from workers.jobs.job_thread import JobThread, renew_seconds
from workers.jobs.limited_engine import LimitedEngine
from workers.runs.active_runs import closing
from workers.runs.engine_environment import download_environment

logger = logging.getLogger(__name__)

BUSY_SECONDS = 2.0
DISCARD_SECONDS = 3600.0
_EXIT_REFUSED = 2
_NO_ROOM = "bytes of disk"
"""Words of the engine's refusal to begin where the disk has no room for the result."""
_OUT_OF_MEMORY = ("Cannot allocate memory", "Unable to allocate", "Memory allocation", "bad_alloc")
_COMMAND_AGAIN = re.compile(r"run the command again(: it goes on where it stopped)?")
"""Remedy of the engine's command, whose reader has a terminal."""
_CONVERTED = 0.9
"""Progress when the engine is done and the files are about to be checked and stored."""
_SLACK_BYTES = 64 << 20
"""Bytes of temporary files that count for nothing."""
_CATALOGUE = "GROVE_PRETRAINED"
"""The one variable of the site that this engine needs: the catalogue of further models."""
_SOURCE = "source"
"""Folder of the uploaded file, a link to its content under its own name."""


class ImportFailed(Exception):
    """The import cannot be completed; the message is its first cause. If it `is_final`, another
    attempt would fail for the same cause."""

    def __init__(self, cause: str, *, is_final: bool = False):
        self.is_final = is_final
        super().__init__(cause)


class ShuttingDown(Exception):
    """The worker shuts down."""


class ModelImportJob(JobThread):
    def __init__(self) -> None:
        super().__init__()
        self._discarded = float("-inf")

    def do_one(self) -> bool:
        if time.monotonic() - self._discarded > DISCARD_SECONDS:
            states.discard_old_files()
            self._discarded = time.monotonic()
        one = states.take()
        if one is None:
            return False
        self.work(one)
        return True

    def work(self, one: ModelImport) -> None:
        """Completes, fails or gives back an import that this worker has taken."""
        logger.info("import %s: %s", one.pk, one)
        attempt = _Attempt(one)
        try:
            attempt.run()
        except states.ImportLost:
            logger.warning(
                "import %s: another worker has it, or it was cancelled; %s",
                one.pk,
                JOB_LEASE.remedy,
            )
        except ShuttingDown:
            states.give_back(one)
        except WeightsError as error:
            _fail(one, ImportFailed(f"The converted model is refused: {error}", is_final=True))
        except (ImportFailed, RegistryRefused, OSError, ValueError) as error:
            _fail(one, error)


def _fail(one: ModelImport, error: Exception) -> None:
    cause = cause_of(error)
    logger.warning("import %s: %s", one.pk, cause)
    with suppress(states.ImportLost):
        states.fail(one, cause, is_final=getattr(error, "is_final", False))


def scratch_of(one: ModelImport) -> Path:
    """Returns the scratch directory of an attempt: on the file system of the uploads, whose
    collector removes what a dead worker left and nobody retried."""
    return settings.UPLOADS_DIR / f"import-{one.pk}-{one.fencing}"


class _Attempt:
    """One worker's attempt at an import."""

    def __init__(self, one: ModelImport):
        self.one = one
        self.scratch = scratch_of(one)
        self.heartbeat = _Heartbeat(one)

    def run(self) -> None:
        self._remove_scratch()
        self.scratch.mkdir(parents=True)
        self.heartbeat.start()
        try:
            result = self._converted()
            recorded = take_record(result)
            layout = self._checked(result)
            self._set(0.95, "Storing the files")
            register(self.one, result, layout, recorded)
        finally:
            self.heartbeat.stop()
            self._remove_scratch()

    def _remove_scratch(self) -> None:
        for path in settings.UPLOADS_DIR.glob(f"import-{self.one.pk}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def _set(self, progress: float, phase: str) -> None:
        self.heartbeat.progress, self.heartbeat.phase = progress, phase

    def _converted(self) -> Path:
        """Runs the engine's command; returns the folder of the converted model."""
        result = self.scratch / "model"
        most = 2 * max(0, room_of(self.one.project)) + _SLACK_BYTES
        variables = _engine_variables(downloads=self.one.kind == ImportKind.PACKAGE)
        engine = LimitedEngine(self.scratch, self._arguments(result), self._limits(), variables)
        try:
            while (status := engine.poll()) is None:
                self._wait(0.1)
                self._set(*self._engine_progress(engine))
                self._refuse_size(most)
        finally:
            if engine.poll() is None:
                engine.kill()
        if status != 0:
            # People know the file by its name; where it lay is the server's own business.
            errors = engine.stderr().replace(f"{self.scratch / _SOURCE}/", "")
            raise _failure(status, errors.replace(f"{self.scratch}/", ""), self._limits())
        return result

    def _arguments(self, result: Path) -> list[str]:
        if self.one.kind == ImportKind.PACKAGE:
            verb = ["models", "add", self.one.package, "--to", str(result), "--accept-licence"]
        else:
            source = self.scratch / _SOURCE / self.one.file
            source.parent.mkdir()
            if self.one.artifact_id is None:
                raise ImportFailed("its file was discarded; upload it again", is_final=True)
            link_or_copy(local_path(self.one.artifact_id), source)
            verb = ["models", "import", str(source), str(result)]
        return [*verb, "--json-progress"]

    def _limits(self) -> dict[str, int]:
        return {
            "memory_bytes": settings.IMPORT_MEMORY_BYTES,
            "cpu_seconds": int(settings.IMPORT_CPU_SECONDS),
            "file_bytes": settings.ARTIFACT_MOST_BYTES["model"],
        }

    def _engine_progress(self, engine: LimitedEngine) -> tuple[float, str]:
        phase = "Converting"
        if self.one.kind == ImportKind.PACKAGE:
            phase = "Downloading and converting"
        for line in reversed(engine.stdout().splitlines()):
            with suppress(ValueError, KeyError, TypeError):
                report = json.loads(line)
                return _CONVERTED * float(report["progress"]), str(report.get("phase") or phase)
        return 0.0, phase

    def _refuse_size(self, most: int) -> None:
        """Raises `ImportFailed` once the scratch directory holds more bytes than that: twice the
        project's room, for what is downloaded and what is made of it."""
        if _bytes_below(self.scratch, without=self.scratch / _SOURCE) > most:
            raise ImportFailed(
                f"the conversion wrote more than {self.one.project} has room for; delete what it "
                "does not need, or have the server's operator raise GROVE_QUOTA_MIB, then retry"
            )

    def _checked(self, result: Path) -> Layout:
        while True:
            self._set(_CONVERTED, "Checking the files")
            try:
                return check(self.one, result)
            except Queued as queued:
                self._set(_CONVERTED, f"Waiting to be checked, {queued.position}")
                self._wait(BUSY_SECONDS)

    def _wait(self, seconds: float) -> None:
        """Waits; raises if the import is not this worker's any more, late, or the worker ends."""
        if closing.wait(seconds):
            raise ShuttingDown
        if self.heartbeat.is_lost.is_set():
            raise states.ImportLost
        if self.one.deadline is not None and timezone.now() > self.one.deadline:
            minutes = settings.IMPORT_SECONDS / 60
            raise ImportFailed(
                f"it did not finish within {minutes:.0f} minutes; retry, or have the server's "
                "operator raise GROVE_IMPORT_MINUTES"
            )


def _bytes_below(folder: Path, without: Path) -> int:
    held = 0
    for root, _, names in os.walk(folder):
        for path in (Path(root) / name for name in names if Path(root) != without):
            with suppress(FileNotFoundError):  # removed by the engine meanwhile
                held += path.lstat().st_size
    return held


class _Heartbeat(threading.Thread):
    """Renews the lease of an import and records its progress every `renew_seconds`, also while a
    large file is hashed; `is_lost` is set once the import is not this worker's any more."""

    def __init__(self, one: ModelImport):
        super().__init__(name="import-heartbeat", daemon=True)
        self.one = one
        self.progress, self.phase = 0.0, "Starting"
        self.is_lost = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            while not self._ended.wait(renew_seconds()):
                try:
                    states.renew(self.one, self.progress, self.phase)
                except states.ImportLost:
                    self.is_lost.set()
                    return
                except Error as error:
                    logger.warning("import %s: waiting for the database: %s", self.one.pk, error)
                    connection.close()
        finally:
            connection.close()

    def stop(self) -> None:
        """Returns when it has ended."""
        self._ended.set()
        self.join()


def _engine_variables(*, downloads: bool) -> dict[str, str]:
    given = {_CATALOGUE: os.environ[_CATALOGUE]} if _CATALOGUE in os.environ else {}
    if downloads:
        given |= download_environment()
    return {**given, "PIP_NO_CACHE_DIR": "1", "OMP_NUM_THREADS": "1"}


def _for_browser(cause: str) -> str:
    """Returns the cause with the remedy that people have on the page: *Retry*."""
    return _COMMAND_AGAIN.sub("retry", cause)


def _failure(status: int, errors: str, limits: dict[str, int]) -> ImportFailed:
    """Returns the first cause of an engine that ended with this status; the failures that do not
    depend on the file alone can be retried."""
    last = errors.splitlines()[-1].strip() if errors else ""
    cause = re.sub(r"^\w+Error: ", "", last) if status == _EXIT_REFUSED else last
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
            f"the engine was killed by signal {-status}, perhaps because the machine has no memory "
            "left; retry"
        )
    is_refusal = status == _EXIT_REFUSED and _NO_ROOM not in last
    cause = _for_browser(cause)
    return ImportFailed(cause or f"the engine ended with status {status}", is_final=is_refusal)
