"""Reading uploaded files in a process of its own (`intake`), which may fail as it likes.

Waits: for a free place (none: refused at once), for the process (`settings.DATASET_READ_SECONDS`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from engine.problems.formats import DETECTED
from webapp.datasets.errors import DatasetRefused, refused

PLACES = 2
"""How many are read at once, by all web processes together."""
LOCK = 0x6461_7461


@dataclass(frozen=True)
class Source:
    """A file to read; `name` is what its owner calls it."""

    path: Path
    name: str


@dataclass(frozen=True)
class Reading:
    """What came out: `problems` is a file in our own format, gone when the reading is left."""

    problems: Path
    format: str
    hash: str
    """Identity of all its problems (`engine.problems.identity.set_hash`)."""
    left_out: list[str]
    statistics: dict[str, Any]
    rows: list[dict[str, Any]]
    """Of every problem, in the order of the file: see `intake.row_of`."""


@contextmanager
def read(sources: Sequence[Source], format: str = DETECTED) -> Iterator[Reading]:
    """The problems of some files.

    Raises:
        DatasetRefused: they are no dataset, or too large to be read here; says which and why.
    """
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reading-", dir=settings.UPLOADS_DIR) as folder:
        out = Path(folder)
        with _a_place():
            _run(sources, format, out)
        yield _result(out)


def _run(sources: Sequence[Source], format: str, out: Path) -> None:
    job = {
        "files": [{"path": str(one.path), "name": one.name} for one in sources],
        "format": format,
        "out": str(out),
        "seconds": settings.DATASET_READ_SECONDS,
        "memory_bytes": settings.DATASET_READ_BYTES,
        "most_bytes": settings.ARTIFACT_MOST_BYTES["dataset"],
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "webapp.datasets.intake"],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.communicate(json.dumps(job).encode(), timeout=settings.DATASET_READ_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode != 0:
        seconds, mebibytes = settings.DATASET_READ_SECONDS, settings.DATASET_READ_BYTES >> 20
        raise refused(
            "uploads",
            ", ".join(one.name for one in sources),
            f"reading it takes more than {seconds} s or {mebibytes} MiB, or it cannot be read "
            "at all: split it into smaller files, or check how it was packed",
        )


def _result(out: Path) -> Reading:
    refusal = out / "refusal.json"
    if refusal.exists():
        told = json.loads(refusal.read_text())
        raise DatasetRefused([{"path": "uploads", "value": "", "reason": text} for text in told])
    summary = json.loads((out / "summary.json").read_text())
    with (out / "rows.jsonl").open() as rows:
        lines = [json.loads(line) for line in rows]
    return Reading(problems=out / "problems.jsonl", rows=lines, **summary)


@contextmanager
def _a_place() -> Iterator[None]:
    """One of the places; the database keeps it until the block ends, or this process."""
    with transaction.atomic(), connection.cursor() as cursor:
        for place in range(PLACES):
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [LOCK, place])
            if cursor.fetchone()[0]:
                yield
                return
        reason = "other datasets are being read at the moment; ask again in some seconds"
        raise refused("uploads", "", reason, 409)
