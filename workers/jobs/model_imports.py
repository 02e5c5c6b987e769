"""Thread that does imports of models, one at a time: converts a GGUF file, or a pretrained model
that it downloads, and registers the result.

The conversion is a command of the engine with limits of memory, CPU time and file size, in the
scratch directory of its attempt (`import_attempts`). Waits: for the engine and for its turn to be
checked, both until the import's deadline.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from webapp.artifacts.selectors import room_of
from webapp.artifacts.store import link_or_copy, local_path
from webapp.errors import Queued
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.layout import Layout
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_imports import states
from webapp.registry.model_imports.registering import check, register, take_record
from webapp.registry.models import ImportKind, ModelImport
from workers.jobs.import_attempts import ImportAttempt, ImportFailed, limit_failure, work
from workers.jobs.job_thread import JobThread
from workers.jobs.limited_engine import LimitedEngine
from workers.runs.engine_environment import download_environment

logger = logging.getLogger(__name__)

BUSY_SECONDS = 2.0
DISCARD_SECONDS = 3600.0
_EXIT_REFUSED = 2
_NO_ROOM = "bytes of disk"
"""Words of the engine's refusal to begin where the disk has no room for the result."""
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
        work(one, _run, states.fail)


def _run(one: ModelImport) -> None:
    with _Attempt(one) as attempt:
        try:
            attempt.run()
        except WeightsError as error:
            cause = f"The converted model is refused: {error}"
            raise ImportFailed(cause, is_final=True) from None
        except RegistryRefused as error:
            raise ImportFailed(str(error)) from None


class _Attempt(ImportAttempt[ModelImport]):
    """One worker's attempt at an import of a model."""

    def __init__(self, one: ModelImport):
        super().__init__(one, "import")

    def run(self) -> None:
        result = self._converted()
        recorded = take_record(result)
        layout = self._checked(result)
        self.report(0.95, "Storing the files")
        register(self.one, result, layout, recorded)

    def _converted(self) -> Path:
        """Runs the engine's command; returns the folder of the converted model."""
        result = self.scratch / "model"
        most = 2 * max(0, room_of(self.one.project)) + _SLACK_BYTES
        variables = _engine_variables(downloads=self.one.kind == ImportKind.PACKAGE)
        engine = LimitedEngine(self.scratch, self._arguments(result), self._limits(), variables)

        def watch() -> None:
            self.report(*self._engine_progress(engine))
            self._refuse_size(most)

        status = self.status_of(engine, watch)
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
            self.report(_CONVERTED, "Checking the files")
            try:
                return check(self.one, result)
            except Queued as queued:
                self.report(_CONVERTED, f"Waiting to be checked, {queued.position}")
                self.wait(BUSY_SECONDS)


def _bytes_below(folder: Path, without: Path) -> int:
    held = 0
    for root, _, names in os.walk(folder):
        for path in (Path(root) / name for name in names if Path(root) != without):
            with suppress(FileNotFoundError):  # removed by the engine meanwhile
                held += path.lstat().st_size
    return held


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
    if (at_limit := limit_failure(status, last, limits)) is not None:
        return at_limit
    is_refusal = status == _EXIT_REFUSED and _NO_ROOM not in last
    cause = _for_browser(cause)
    return ImportFailed(cause or f"the engine ended with status {status}", is_final=is_refusal)
