"""Parquet files, and Arrow files as the `datasets` library writes them, row by row.

Invariants: such a file is parsed in a process of its own behind the walls of the sandbox
(`walled`), never here; only the columns that were asked for are read, a few rows at a time.
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

from engine.problems.errors import DatasetError, DatasetFault

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
MOST_MESSAGE_BYTES = 1 << 30
"""Of some rows together; a reader that sends more is not believed."""
MEMORY_BYTES = 16 << 30
CPU_SECONDS = 4 * 3600
"""What the reader may take at most; less where this process itself is held to less."""
_READER = Path(__file__).with_name("walled.py")
_RESERVE_BYTES = 64 << 20


def is_columnar(start: bytes) -> bool:
    """Whether a file that starts so is one of ours."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def rows_of(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[int, Any]]:
    """(position from 1, row); of the fields only `wanted`, if that is given.

    Raises:
        DatasetError: the file cannot be read.
        MemoryError: it takes more memory than this process may.
    """
    number = 0
    try:
        for rows in _batches(path, wanted):
            for row in rows:
                number += 1
                yield number, row
    except (OSError, ValueError, RecursionError) as error:
        remedy = f"cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}"
        raise DatasetError([DatasetFault(str(path), number, "file", str(path), remedy)]) from None


def _batches(path: Path, wanted: Collection[str] | None) -> Iterator[list[Any]]:
    columns = json.dumps(None if wanted is None else sorted(wanted))
    limits = (_least(CPU_SECONDS, resource.RLIMIT_CPU), _least(MEMORY_BYTES, resource.RLIMIT_AS))
    with path.open("rb") as file:
        reader = subprocess.Popen(
            [sys.executable, "-P", "-B", str(_READER), columns, *map(str, limits)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        )
    assert reader.stdout is not None
    try:
        while (rows := _following(reader.stdout, reader)) is not None:
            yield rows
    finally:
        reader.kill()
        reader.stdout.close()
        reader.wait()


def _following(stream: IO[bytes], reader: subprocess.Popen[bytes]) -> list[Any] | None:
    """The next rows; None after the last ones.

    Raises:
        ValueError: the file, or what came of it, is none that can be read.
        MemoryError: it is too large for the walls.
    """
    message = msgspec.msgpack.decode(_framed(stream, reader))
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


def _framed(stream: IO[bytes], reader: subprocess.Popen[bytes]) -> bytes:
    head = stream.read(8)
    size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if size > MOST_MESSAGE_BYTES:
        raise ValueError("some of its rows are larger than 1 GiB together; split it")
    data = stream.read(size) if size else b""
    if not data or len(data) < size:
        status = reader.wait()
        raise ValueError(f"its reader ended early (status {status}): check how it was written")
    return data


def _least(most: int, limit: int) -> int:
    """What the reader may have of something that this process is limited in."""
    mine = resource.getrlimit(limit)[1]
    room = _RESERVE_BYTES if limit == resource.RLIMIT_AS else 2
    return most if mine == resource.RLIM_INFINITY else max(1, min(most, mine - room))
