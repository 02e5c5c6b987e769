"""In-memory files that this process and one child share.

Invariant: no more is read than the child's file size limit let it write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def memory_file(content: bytes = b"") -> Iterator[int]:
    """Yields the descriptor of a new file that holds `content`, positioned at its start."""
    descriptor = os.memfd_create("job", os.MFD_CLOEXEC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def channel() -> Iterator[list[int]]:
    """Yields [read end, write end] of a new pipe; a caller that closes one must remove it."""
    ends = list(os.pipe2(os.O_CLOEXEC))
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def content(descriptor: int, most: int) -> bytes:
    """Returns the first `most` bytes of a file, whatever its position."""
    data = bytearray()
    while len(data) < most and (chunk := os.pread(descriptor, most - len(data), len(data))):
        data += chunk
    return bytes(data)
