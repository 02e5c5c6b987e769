"""Rows of CSV and of tab-separated files, as tables are exported: a first line with the names of
the columns, quoted cells, which may go over lines.

Invariant: every cell is a text, as written, and an empty one is null; the formats read lists and
objects in their fields.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import IO, Any

_NAME = r'"?[A-Za-z_][\w .:/-]*"?'
_HEADER = re.compile(rf'(?:{_NAME}|"")?([,\t;]){_NAME}(?:\1{_NAME})*')
_CELL_REMEDY = "quote cells that hold the delimiter, quotes or line ends, or remove the row"


def delimiter_of(line: bytes) -> str:
    """Returns what separates the columns that a file's first line names; empty if it names none."""
    try:
        header = _HEADER.fullmatch(line.decode("utf-8").strip("\r\n"))
    except UnicodeDecodeError:
        return ""
    return header[1] if header else ""


def rows_of(file: IO[bytes], delimiter: str, most_chars: int) -> Iterator[tuple[int, Any]]:
    """Yields (number of its first line, row) of an open file; a row with more or fewer cells than
    the first line has names is a ValueError.

    Raises:
        ValueError: it is no text in UTF-8, or a cell has more than `most_chars` characters.
    """
    csv.field_size_limit(most_chars)
    lines = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=delimiter)
    try:
        names = next(lines)
        start = lines.line_num + 1
        for cells in lines:
            if cells:
                yield start, _row(names, cells)
            start = lines.line_num + 1
    except csv.Error as error:
        raise ValueError(f"row after line {lines.line_num}: {error}; {_CELL_REMEDY}") from None


def _row(names: list[str], cells: list[str]) -> dict[str, Any] | ValueError:
    if len(cells) != len(names):
        count = f"has {len(cells)} cells, and the first line names {len(names)} columns"
        return ValueError(f"{count}; {_CELL_REMEDY}")
    pairs = zip(names, cells, strict=True)
    return {name: cell if cell else None for name, cell in pairs if name}
