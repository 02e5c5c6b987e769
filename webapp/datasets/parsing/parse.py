"""Parsing of uploaded files in a separate process (`parser_process`), which may fail in any way.

Waits: for a slot (none free: refused at once), for the process (`settings.DATASET_READ_SECONDS`).
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

from engine.problems.formats import DETECTED
from webapp.datasets.errors import DatasetRefused, refused
from webapp.limited_process import free_slot, run_limited

SLOTS = 2
"""Slots: maximum number of datasets read concurrently by all web processes together."""
LOCK = 0x6461_7461
BUSY = 409
"""Status of a refusal because no slot is free: retrying is enough."""


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
def read(sources: Sequence[Source], format: str = DETECTED) -> Iterator[Reading]:
    """Reads the problems of some files.

    Raises:
        DatasetRefused: they are no dataset, or too large to be read here; names the file and the
            reason.
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
    "read at all: split it into smaller files, or check how it was packed"
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
    """Takes one of the slots until the block ends. Raises `DatasetRefused` if none is free."""
    with free_slot(LOCK, SLOTS) as is_free:
        if not is_free:
            reason = "other datasets are being read at the moment; retry in some seconds"
            raise refused("uploads", "", reason, BUSY)
        yield
