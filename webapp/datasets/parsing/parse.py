"""Parsing of uploaded files in a separate process (`parser_process`), which may fail in any way.

Waits: for a turn (`QUEUE`; until then it is answered with its place), for the process
(`settings.DATASET_READ_SECONDS`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.config.deadlines import DATASET_READ
from engine.problems.formats import DETECTED
from webapp.accounts.models import User
from webapp.datasets.errors import DatasetRefused, refused
from webapp.limited_process import Queue, free_slot, run_limited
from webapp.projects.models import Project
from webapp.projects.turns import in_turn

QUEUE = Queue("datasets", lock=0x6461_7461, slots=2)
"""Datasets of people: so many are read at once by all web processes together."""
SLOTS = 2
"""Files of the server that are read at once by all web processes together."""
LOCK = 0x6669_6C65


@dataclass(frozen=True)
class Request:
    """For whom files are read; `work` identifies them while they wait."""

    project: Project
    user: User
    work: Sequence[object]


@dataclass(frozen=True)
class Source:
    """A file to read; `name` is its original name."""

    path: Path
    name: str


@dataclass(frozen=True)
class Reading:
    """Result: `problems` is a file in Grove's format, deleted when the context is left."""

    problems: Path
    format: str
    hash: str
    """Identity of all its problems (`engine.problems.identity.set_hash`)."""
    left_out: list[str]
    statistics: dict[str, Any]
    rows_file: Path

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the row of every problem (`parser_process.row_of`), in the order of the file, one
        at a time.
        """
        with self.rows_file.open() as lines:
            for line in lines:
                yield json.loads(line)


@contextmanager
def read(sources: Sequence[Source], request: Request, format: str = DETECTED) -> Iterator[Reading]:
    """Reads the problems of some files, in turn.

    Raises:
        Queued: it is not the request's turn.
        DatasetRefused: they are no dataset, or too large to be read here; names the file and the
            reason.
    """
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reading-", dir=settings.UPLOADS_DIR) as folder:
        out = Path(folder)
        with in_turn(QUEUE, request.project.workspace, request.user, request.work):
            _run(sources, format, out)
        yield _result(out)


@contextmanager
def read_now(sources: Sequence[Source], format: str) -> Iterator[Reading]:
    """Reads the problems of some files for the server's operator, who waits for no turn.

    Raises:
        DatasetRefused: as `read`, or other files of the server are being read (status 409).
    """
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reading-", dir=settings.UPLOADS_DIR) as folder:
        out = Path(folder)
        with parsing_slot():
            _run(sources, format, out)
        yield _result(out)


def _run(sources: Sequence[Source], format: str, out: Path) -> None:
    job = {
        "files": [{"path": str(one.path), "name": one.name} for one in sources],
        "format": format,
        "out": str(out),
        **limits(),
    }
    if not run_limited("webapp.datasets.parsing.parser_process", job):
        raise refused(
            "uploads", ", ".join(one.name for one in sources), TOO_MUCH.format(**limits())
        )


def limits() -> dict[str, int]:
    """Returns the limits of a job that reads problems."""
    return {
        "seconds": settings.DATASET_READ_SECONDS,
        "memory_bytes": settings.DATASET_READ_BYTES,
        "most_bytes": settings.ARTIFACT_MOST_BYTES["dataset"],
    }


TOO_MUCH = (
    "reading it takes more than {seconds} s or {memory_bytes} bytes of memory, or it cannot be "
    "read at all: split it into smaller files, or check how it was packed; "
    f"{DATASET_READ.remedy}"
)


def _result(out: Path) -> Reading:
    refusal = out / "refusal.json"
    if refusal.exists():
        reasons = json.loads(refusal.read_text())
        raise DatasetRefused([{"path": "uploads", "value": "", "reason": text} for text in reasons])
    summary = json.loads((out / "summary.json").read_text())
    return Reading(problems=out / "problems.jsonl", rows_file=out / "rows.jsonl", **summary)


@contextmanager
def parsing_slot() -> Iterator[None]:
    """Takes a slot for a file of the server until the block ends. Raises `DatasetRefused` if none
    is free."""
    with free_slot(LOCK, SLOTS) as is_free:
        if not is_free:
            reason = "other files of the server are being read now; retry in some seconds"
            raise refused("uploads", "", reason, 409)
        yield
