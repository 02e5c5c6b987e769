"""Rows of Parquet files, and of Arrow files as the `datasets` library writes them.

Invariants: such a file is parsed in a separate process in the sandbox's isolation
(`isolated_reader`), never here; only the requested columns are read, a few rows at a time.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from engine.problems.errors import DatasetError, DatasetIssue

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
MAX_MESSAGE_BYTES = 1 << 30
"""Maximum size of one message of rows; a reader that sends more is not trusted."""
MEMORY_BYTES = 16 << 30
CPU_SECONDS = 4 * 3600
"""Limits of the reader; lower if this process itself has lower limits."""
_READER = Path(__file__).with_name("isolated_reader.py")
_RESERVE_BYTES = 64 << 20


def is_columnar(start: bytes) -> bool:
    """Returns whether a file with this start is Parquet or Arrow."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def rows_of(path: Path, fields: Collection[str] | None) -> Iterator[tuple[int, Any]]:
    """Yields (number from 1, row), with only the `fields` fields if given.

    Raises:
        DatasetError: the file cannot be read.
        MemoryError: the file needs more memory than its reader may use.
    """
    number = 0
    try:
        for rows in _batches(path, fields):
            for row in rows:
                number += 1
                yield number, row
    except (OSError, ValueError, RecursionError) as error:
        remedy = f"cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}"
        raise DatasetError([DatasetIssue(str(path), number, "file", str(path), remedy)]) from None


def _batches(path: Path, fields: Collection[str] | None) -> Iterator[list[Any]]:
    encoded_fields = json.dumps(None if fields is None else sorted(fields))
    limits = (
        _effective_limit(CPU_SECONDS, resource.RLIMIT_CPU),
        _effective_limit(MEMORY_BYTES, resource.RLIMIT_AS),
    )
    with path.open("rb") as file:
        reader = subprocess.Popen(
            [sys.executable, "-P", "-B", str(_READER), encoded_fields, *map(str, limits)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        )
    assert reader.stdout is not None
    try:
        while (rows := _next_rows(reader.stdout, reader)) is not None:
            yield rows
    finally:
        reader.kill()
        reader.stdout.close()
        reader.wait()


def _next_rows(stream: IO[bytes], reader: subprocess.Popen[bytes]) -> list[Any] | None:
    """Returns the next rows; None after the last ones.

    Raises:
        ValueError: the file, or the reader's output, cannot be read.
        MemoryError: the file exceeds the reader's memory limit.
    """
    message = msgspec.msgpack.decode(_read_message(stream, reader))
    if not isinstance(message, dict) or len(message) != 1:
        raise ValueError("its reader sent what is no answer")
    ((kind, content),) = message.items()
    if kind == "rows" and isinstance(content, list):
        return content
    if kind == "memory":
        raise MemoryError(str(content))
    if kind == "end":
        return None
    raise ValueError(str(content))


def _read_message(stream: IO[bytes], reader: subprocess.Popen[bytes]) -> bytes:
    header = stream.read(8)
    size = struct.unpack("<Q", header)[0] if len(header) == 8 else 0
    if size > MAX_MESSAGE_BYTES:
        raise ValueError("some of its rows are larger than 1 GiB together; split it")
    data = stream.read(size) if size else b""
    if not data or len(data) < size:
        status = reader.wait()
        raise ValueError(f"its reader ended early (status {status}): check how it was written")
    return data


def _effective_limit(most: int, limit: int) -> int:
    """Returns the reader's limit of a resource: `most`, or less if this process has less."""
    mine = resource.getrlimit(limit)[1]
    room = _RESERVE_BYTES if limit == resource.RLIMIT_AS else 2
    return most if mine == resource.RLIM_INFINITY else max(1, min(most, mine - room))
