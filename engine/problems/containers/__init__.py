"""Containers of data sets: rows of local files and folders.

A path is a file (JSON, JSONL, CSV, each plain, gzip or zstd; Parquet; Arrow), or a folder: one that
`datasets` saved, a copy of a repository with shards anywhere below it, or the original folders of
APPS with one folder per problem.

Invariant: the order of rows depends only on the names of the files and their content.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.problems.containers import columns, delimited, text
from engine.problems.containers.wrappers import is_viewer_page, is_viewer_row
from engine.problems.errors import DatasetError, DatasetIssue

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".parquet", ".arrow", ".csv", ".tsv")
_PACKED = ("", ".gz", ".zst")
_NO_ROWS = frozenset(
    {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json"}
)
_QUESTION = "question.txt"
_QUESTION_FILES = {"input_output": "input_output.json", "solutions": "solutions.json"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row and its position; `line` counts from 1 in its file."""

    file: str
    line: int
    data: Any
    """The row's fields, or a ValueError with the reason why the line has none."""


def rows_of(path: Path, fields: Collection[str] | None = None) -> Iterator[Row]:
    """Yields all rows of a file or folder; from columnar files it reads only `fields` columns.

    Raises:
        DatasetError: the path cannot be read, or is a folder without files of rows.
    """
    for _, rows in parts_of(path, fields):
        yield from rows


def parts_of(
    path: Path, fields: Collection[str] | None = None
) -> Iterator[tuple[Path, Iterator[Row]]]:
    """Yields each file of a folder, or the one file, with its rows; otherwise as `rows_of`.

    Raises:
        DatasetError: as `rows_of`.
    """
    if not is_folder(path):
        yield path, _rows_of_file(path, fields)
        return
    files = files_below(path)
    if not files:
        remedy = f"holds no file that ends in {', '.join(_SUFFIXES)} (or with .gz or .zst)"
        raise DatasetError([DatasetIssue(str(path), 0, "folder", str(path), remedy)])
    for file in files:
        is_question = file.name == _QUESTION
        yield file, _question_folder(file) if is_question else _rows_of_file(file, fields)


def is_folder(path: Path) -> bool:
    """Returns whether this is a folder, not a file.

    Raises:
        DatasetError: the path is neither (reading a pipe or a device might never end), or does not
            exist.
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
    """Returns the files of rows in a folder and the folders below it, sorted by name.

    Leaves out what tools write alongside them: hidden files and folders, descriptions, caches.
    """
    files: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if _QUESTION in names:
            files.append(Path(parent, _QUESTION))
            continue
        files += [Path(parent, name) for name in names if _holds_rows(name)]
    return sorted(files)


def is_jsonl(path: Path) -> bool:
    """Returns whether a file holds one problem per line, as its first line says; rows of the data
    set viewer hold theirs inside.

    Raises:
        DatasetError: the file cannot be read.
    """
    if columns.is_columnar(_start(path)):
        return False
    first = next(text.lines_of(path), (0, b""))[1].strip()
    is_one_value = first == b"{" or first.startswith(b"[")
    row = text.row_of(first)
    is_table = bool(delimited.delimiter_of(first))
    return not (is_one_value or is_table or is_viewer_row(row) or is_viewer_page(row))


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
    return DatasetError([DatasetIssue(str(path), 0, "file", str(path), remedy)])


def _rows_of_file(path: Path, fields: Collection[str] | None) -> Iterator[Row]:
    is_table = columns.is_columnar(_start(path))
    rows = columns.rows_of(path, fields) if is_table else text.rows_of(path)
    for line, data in rows:
        yield Row(str(path), line, data)


def _question_folder(question: Path) -> Iterator[Row]:
    """Yields a problem in the original layout of APPS as the row of its published table."""
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
