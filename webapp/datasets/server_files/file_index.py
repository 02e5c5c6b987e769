"""Index of a file of the server: its problems in Grove's format, built once per content.

Invariants: an index exists completely or not at all, and is of the files as they were when it was
built: its name is a digest of their paths, sizes and times. At most `settings.PROBLEM_INDEXES` are
kept, the most recently used.
Waits, for the first request of a file: for a slot of `parsing` (none free: refused at once), for
the process (`DATASET_READ_SECONDS`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from engine.config.errors import ConfigError
from engine.problems.containers import files_below, is_folder
from engine.problems.errors import DatasetError
from webapp.datasets.errors import DatasetRefused
from webapp.datasets.parsing.parse import TOO_MUCH, limits, parsing_slot
from webapp.datasets.server_files.indexing import FIRST, INDEX, PROBLEMS, REFUSAL, WIDTH, key_of
from webapp.disk import cause_of, is_full
from webapp.limited_process import run_limited


@dataclass(frozen=True)
class FileIndex:
    folder: Path

    @property
    def path(self) -> Path:
        """File of all problems, one per line in Grove's format."""
        return self.folder / PROBLEMS

    @property
    def first(self) -> list[dict[str, str]]:
        """Returns {id, statement} of the first problems, the statement truncated."""
        return json.loads((self.folder / FIRST).read_text())

    def locate(self, problem_id: str) -> tuple[int, int] | None:
        """Returns offset and length of a problem's line; None if no problem has that id. Reads some
        20 lines of the index, which is sorted by the digests of ids."""
        key = key_of(problem_id).encode()
        with (self.folder / INDEX).open("rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size // WIDTH
            while low < high:
                middle = (low + high) // 2
                file.seek(middle * WIDTH)
                digest, offset, length = file.read(WIDTH).split()
                if digest == key:
                    return int(offset), int(length)
                low, high = (middle + 1, high) if digest < key else (low, middle)
        return None


def of(dataset: str, format: str) -> FileIndex:
    """Returns the index of a file or folder of the server, built if missing.

    Raises:
        ConfigError: it cannot be read, or not within the limits, or no slot is free.
        OSError: the disk is full (`disk.is_full`).
    """
    try:
        folder = Path(settings.PROBLEM_INDEX_DIR) / identity_of(Path(dataset), format)
        if not folder.is_dir():
            _make(dataset, format, folder)
        os.utime(folder)  # most recently used
    except DatasetRefused as error:
        reasons = "; ".join(one["reason"] for one in error.problems)
        raise _refusal(dataset, reasons) from None
    except (DatasetError, OSError) as error:
        if is_full(error):
            raise
        raise _refusal(dataset, cause_of(error)) from None
    return FileIndex(folder)


def identity_of(path: Path, format: str) -> str:
    """Returns a digest of the paths, sizes and times of the files. Raises `OSError`."""
    files = files_below(path) if is_folder(path) else [path]
    parts = [[str(path.resolve()), format]]
    for file in files:
        stat = file.stat()
        parts.append([str(file), stat.st_size, stat.st_mtime_ns])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _make(dataset: str, format: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        job = {"dataset": dataset, "format": format, "out": str(draft), **limits()}
        with parsing_slot():
            done = run_limited("webapp.datasets.server_files.indexing", job)
        if not done:
            raise _refusal(dataset, TOO_MUCH.format(**limits()))
        if (draft / REFUSAL).exists():
            raise _refusal(dataset, (draft / REFUSAL).read_text())
        if not folder.is_dir():
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    _evict(folder.parent)


def _evict(indexes: Path) -> None:
    by_age = sorted(
        (one for one in indexes.iterdir() if not one.name.startswith(".")),
        key=lambda one: one.stat().st_mtime,
    )
    for old in by_age[: -settings.PROBLEM_INDEXES]:
        shutil.rmtree(old, ignore_errors=True)


def _refusal(dataset: str, reason: str) -> ConfigError:
    return ConfigError([{"path": "version", "value": Path(dataset).name, "reason": reason}])
