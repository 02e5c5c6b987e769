"""Rows of text files: JSON, JSONL or CSV; plain, gzip or zstd by their first bytes, not their name.

Invariant: a file is read line by line; no line may be longer than MAX_LINE_BYTES after
decompression, so a small file cannot use up all memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from engine.config import bounded_json, git_lfs
from engine.problems.containers import delimited
from engine.problems.containers.wrappers import is_viewer_page, rows_inside, unwrapped
from engine.problems.errors import DatasetError, DatasetIssue

MAX_LINE_BYTES = 1 << 30
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_OTHER_UNICODE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OTHERS = (
    (b"PK\x03\x04", "a zip archive", "unpack it and give a file of it"),
    (b"BZh", "packed by bzip2", "unpack it, or pack it with gzip or zstd"),
    (b"\xfd7zXZ", "packed by xz", "unpack it, or pack it with gzip or zstd"),
    (b"7z\xbc\xaf'", "a 7z archive", "unpack it and give a file of it"),
    (b"\x04\x22\x4d\x18", "packed by lz4", "unpack it, or pack it with gzip or zstd"),
    (_GZIP, "packed by gzip twice", "unpack it once"),
    (_ZSTD, "packed by zstd twice", "unpack it once"),
    (b"PAR1", "Parquet that is packed", "unpack it"),
    (b"PARE", "encrypted Parquet", "write it without encryption"),
    (b"ARROW1", "Arrow that is packed", "unpack it"),
    (b"ORC", "ORC", "write it as Parquet"),
    (b"SQLite format 3", "a database of SQLite", "export its table as JSONL"),
    (b"%PDF", "a PDF", "give the data themselves"),
    *((bytes([0x80, version]), "a pickle", "write it as JSONL") for version in range(2, 6)),
    (b"<!doctype", "a page in HTML", "download the file itself"),
    (b"<html", "a page in HTML", "download the file itself"),
)
"""Beginnings of other kinds of files, what they are, and the remedy."""
_TAR_MAGIC = slice(257, 262)
_SHOWN_BYTES = 40
LINE_REMEDY = "correct the line, or remove it"


class BadLine(ValueError):
    """Why a line of JSONL is no row, with the remedy; `start` is its beginning. Every way of
    reading a file says it in these words."""

    def __init__(self, line: bytes, error: ValueError | RecursionError):
        self.start = line[:_SHOWN_BYTES]
        super().__init__(_why_no_json(error))


def _why_no_json(error: ValueError | RecursionError) -> str:
    if isinstance(error, bounded_json.LongNumber):
        return str(error)
    if isinstance(error, RecursionError):
        return f"is nested too deeply; {LINE_REMEDY}"
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON ({error.msg} at character {error.pos + 1}); {LINE_REMEDY}"
    return f"is not JSON ({error}); {LINE_REMEDY}"


def lines_of(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are not blank, with their number from 1.

    Raises:
        DatasetError: the file cannot be read or decompressed, or a line is too long.
    """
    number = 0
    try:
        with _opened(path) as file:
            while line := file.readline(max_line_bytes + 1):
                number += 1
                if len(line) > max_line_bytes:
                    raise ValueError(f"a line is longer than {max_line_bytes} bytes; split it")
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                    if line.startswith(_OTHER_UNICODE):
                        raise ValueError("it is UTF-16 or UTF-32; save it as UTF-8")
                    if git_lfs.is_pointer(line):
                        raise ValueError(f"it is {git_lfs.WHAT}; {git_lfs.REMEDY}")
                    _refuse_others(line)
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        issue = DatasetIssue(str(path), number, "file", str(path), f"cannot be read: {text}")
        raise DatasetError([issue]) from None


def _refuse_others(start: bytes) -> None:
    """Raises `ValueError` for the beginning of another kind of file: lines of an archive may be
    rows, and nobody wants to know that the others are none."""
    if start[_TAR_MAGIC] == b"ustar":
        raise ValueError("it is a tar archive; unpack it and give a file of it")
    for magic, what, remedy in _OTHERS:
        if start[: len(magic)].lower() == magic.lower():
            raise ValueError(f"it is {what}; {remedy}")


def rows_of(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields (line, row) of a JSONL file, or (number from 1, row) of a JSON file that holds rows,
    as `wrappers` reads it. A line may also hold a response of the data set viewer.

    A line that is not JSON, and a row that is cut, yield a ValueError instead of a row.

    Raises:
        DatasetError: the file cannot be read, or is one JSON value with an error.
    """
    for number, row in _wrapped_rows_of(path):
        for one in row["rows"] if is_viewer_page(row) else (row,):
            yield number, unwrapped(one)


def _wrapped_rows_of(path: Path) -> Iterator[tuple[int, Any]]:
    lines = lines_of(path)
    number, first = next(lines, (0, b""))
    if first.strip() == b"{":
        yield from _printed_over_lines(path, number, first, lines)
        return
    if first.lstrip().startswith(b"["):
        text = b"".join([first, *(line for _, line in _within_limit(path, len(first), lines))])
        yield from enumerate(_rows_of_value(path, first, _value(text)), start=1)
        return
    if delimiter := delimited.delimiter_of(first):
        yield from _table(path, delimiter)
        return
    if not number:
        return
    row, following = row_of(first), next(lines, None)
    if following is None and isinstance(row, dict):
        yield from enumerate(rows_inside(row), start=1)
        return
    yield number, row
    if following is not None:
        yield following[0], row_of(following[1])
    for number, line in lines:
        yield number, row_of(line)


def _table(path: Path, delimiter: str) -> Iterator[tuple[int, Any]]:
    number = 0
    try:
        with _opened(path) as file:
            for number, row in delimited.rows_of(file, delimiter, MAX_LINE_BYTES):
                yield number, row
    except (OSError, EOFError, zlib.error, ValueError) as error:
        issue = DatasetIssue(str(path), number, "file", str(path), f"cannot be read: {error}")
        raise DatasetError([issue]) from None


def _printed_over_lines(
    path: Path, number: int, first: bytes, lines: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, Any]]:
    """Yields the rows of a file whose first line is `{`: one object, which is or holds rows, or
    several that were printed one after another, as `jq` prints them; each ends with a line that is
    `}`, and has the number of its first line."""
    numbered = [(number, first), *_within_limit(path, len(first), lines)]
    value = _value(b"".join(line for _, line in numbered))
    if isinstance(value, ValueError) and "Extra data" in str(value):
        yield from _objects(numbered)
    else:
        yield from enumerate(_rows_of_value(path, first, value), start=1)


def _objects(lines: list[tuple[int, bytes]]) -> Iterator[tuple[int, Any]]:
    start, whole = 0, list[bytes]()
    for number, line in lines:
        if whole and line.rstrip() == b"{":  # the one before is torn
            yield start, row_of(b"".join(whole))
            whole.clear()
        start = start if whole else number
        whole.append(line)
        if line.rstrip() == b"}":
            yield start, row_of(b"".join(whole))
            whole.clear()
    if whole:
        yield start, row_of(b"".join(whole))


def row_of(line: bytes) -> Any:
    """Returns the JSON value of a line, or a `BadLine`."""
    try:
        return bounded_json.loads(line.decode("utf-8"), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        return BadLine(line, error)


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON; raises `ValueError` if a field comes twice: which one is meant is
    not known."""
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"field {next(k for k in keys if keys.count(k) > 1)!r} comes twice")
    return data


def parsed(text: bytes | str) -> Any:
    """Returns the JSON value, or a ValueError with the reason why it cannot be parsed."""
    try:
        return bounded_json.loads(text)
    except bounded_json.LongNumber as error:
        return error
    except RecursionError:
        return ValueError("is nested too deeply")
    except ValueError as error:
        return ValueError(f"is not JSON: {error}")


class _Twice(dict[str, Any]):
    """An object of JSON of which a field comes twice."""


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object; of one with a field that comes twice, one that says so, since its row
    alone is left out."""
    data = dict(pairs)
    return _Twice(data) if len(data) < len(pairs) else data


def _value(text: bytes) -> Any:
    """Returns the JSON value of a file, or a ValueError with the reason why it cannot be parsed."""
    try:
        return bounded_json.loads(text, object_pairs_hook=_marked)
    except (ValueError, RecursionError):
        value = parsed(text)
        return value if isinstance(value, ValueError) else ValueError("is not JSON")


def _rows_of_value(path: Path, first: bytes, value: Any) -> Iterator[Any]:
    """Yields the rows in the JSON value of a file; of one that has a field twice, the reason."""
    if isinstance(value, ValueError):
        raise DatasetError([DatasetIssue(str(path), 0, "file", first[:80], str(value))])
    for row in rows_inside(value):
        yield _twice(row) or row


def _twice(row: Any) -> ValueError | None:
    """Returns why a row is none: an object in it has a field twice; None if it is one."""
    pending: list[Any] = [row]
    while pending:
        one = pending.pop()
        if isinstance(one, _Twice):
            names = ", ".join(map(repr, one))[:_SHOWN_BYTES]
            return ValueError(f"a field comes twice, of {names}; {LINE_REMEDY}")
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
    return None


def _within_limit(
    path: Path, size: int, lines: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Yields the lines after the first, of `size` bytes, of a file that is one JSON value."""
    for number, line in lines:
        size += len(line)
        if size > MAX_LINE_BYTES:
            remedy = f"one JSON value of more than {MAX_LINE_BYTES >> 20} MiB; write it as JSONL"
            raise DatasetError([DatasetIssue(str(path), 0, "file", str(path), remedy)])
        yield number, line


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(_GZIP):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if start == _ZSTD:
        import pyarrow  # imported only for such files

        stream = pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")
        return io.BufferedReader(stream, 1 << 16)
    return path.open("rb")
