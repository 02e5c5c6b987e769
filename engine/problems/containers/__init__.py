"""Rows of local files and folders, whatever they are packed in.

A path is a file (JSON, JSONL, each plain, gzip or zstd; Parquet; Arrow), or a folder: one that
`datasets` saved, a copy of a repository with shards anywhere below it, or the original folders of
APPS with one folder per problem.

Invariant: the order of rows follows from the names of the files and their content alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.problems.containers import columns, text
from engine.problems.errors import DatasetError, DatasetFault

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".parquet", ".arrow")
_PACKED = ("", ".gz", ".zst")
_NO_ROWS = frozenset(
    {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json"}
)
_QUESTION = "question.txt"
_QUESTION_FILES = {"input_output": "input_output.json", "solutions": "solutions.json"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row and its place: `line` counts from 1 in its file."""

    file: str
    line: int
    data: Any
    """The row's fields, or the ValueError that says why the line holds none."""


def rows_of(path: Path, wanted: Collection[str] | None = None) -> Iterator[Row]:
    """All rows of a file or folder; where columns can be left unread, only the `wanted` ones are.

    Raises:
        DatasetError: it cannot be read, or is a folder without such files.
    """
    if not is_folder(path):
        yield from _rows_of_file(path, wanted)
        return
    files = files_below(path)
    if not files:
        remedy = f"holds no file that ends in {', '.join(_SUFFIXES)} (or with .gz or .zst)"
        raise DatasetError([DatasetFault(str(path), 0, "folder", str(path), remedy)])
    for file in files:
        yield from _question_folder(file) if file.name == _QUESTION else _rows_of_file(file, wanted)


def is_folder(path: Path) -> bool:
    """Whether this is a folder, not a file.

    Raises:
        DatasetError: it is neither (reading a pipe or a device might never end), or not there.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(path, f"cannot be read: {reason}") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise _unreadable(path, "is neither a file nor a folder")
    return stat.S_ISDIR(mode)


def files_below(folder: Path) -> list[Path]:
    """The files of rows of a folder and the folders below it, by name.

    Left out is what tools write beside them: hidden files and folders, descriptions, caches.
    """
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if _QUESTION in names:
            found.append(Path(parent, _QUESTION))
            continue
        found += [Path(parent, name) for name in names if _holds_rows(name)]
    return sorted(found)


def is_jsonl(path: Path) -> bool:
    """Whether a file holds one JSON value per line, as far as its beginning tells.

    Raises:
        DatasetError: it cannot be read.
    """
    if columns.is_columnar(_start(path)):
        return False
    first = next(text.lines_of(path), (0, b""))[1].strip()
    return first != b"{" and not first.startswith(b"[")


def _holds_rows(name: str) -> bool:
    if name.startswith((".", "cache-")) or name in _NO_ROWS:
        return False
    return name.endswith(tuple(kind + packed for kind in _SUFFIXES for packed in _PACKED))


def _start(path: Path) -> bytes:
    if is_folder(path):
        raise _unreadable(path, "is a folder that is called like a file")
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None


def _unreadable(path: Path, remedy: str) -> DatasetError:
    return DatasetError([DatasetFault(str(path), 0, "file", str(path), remedy)])


def _rows_of_file(path: Path, wanted: Collection[str] | None) -> Iterator[Row]:
    is_table = columns.is_columnar(_start(path))
    rows = columns.rows_of(path, wanted) if is_table else text.rows_of(path)
    for line, data in rows:
        yield Row(str(path), line, data)


def _question_folder(question: Path) -> Iterator[Row]:
    """One problem in the original layout of APPS, as the row that its published table has."""
    try:
        data: dict[str, Any] = {
            "problem_id": question.parent.name,
            "question": question.read_text("utf-8"),
            "starter_code": _text_if_any(question.with_name("starter_code.py")),
        }
        for field, name in _QUESTION_FILES.items():
            data[field] = _text_if_any(question.with_name(name))
        metadata = text.parsed(_text_if_any(question.with_name("metadata.json")) or "{}")
        if isinstance(metadata, dict):
            data = {**metadata, **data}
        yield Row(str(question), 1, data)
    except (OSError, UnicodeDecodeError) as error:
        yield Row(str(question), 1, ValueError(f"cannot be read: {error}"))


def _text_if_any(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""
