"""Files of records with checksums, as TensorFlow writes them: length, its checksum, the content,
its checksum.

Invariants: a record that its writer has not finished is none; one whose checksum is wrong ends the
file. Nothing of a file is held in memory but one record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_HEAD, _TAIL = 12, 4
LONGEST = 64 * 2**20
"""Bytes of a record that is read; a longer one, as of a graph or a video, is passed over."""


class Damaged(ValueError):
    """Raised for a file that cannot be read further; names it and the record."""


class RecordFile:
    """One file, which is read further by each call of `new`."""

    def __init__(self, path: Path):
        self.path = path
        self.count = 0
        """Number of records that were read."""
        self._offset = 0

    def new(self) -> Iterator[bytes]:
        """Yields the records that were not yielded before; empty for one beyond `LONGEST`.

        Raises:
            Damaged: a checksum is wrong, or the file was made shorter. OSError.
        """
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size < self._offset:
                raise self._damaged(f"the file was {self._offset} bytes and is {size} now")
            file.seek(self._offset)
            while self._offset + _HEAD <= size:
                head = file.read(_HEAD)
                length, checksum = struct.unpack("<QI", head)
                if masked(crc32c(head[:8])) != checksum:
                    raise self._damaged("the checksum of its length is wrong")
                end = self._offset + _HEAD + length + _TAIL
                if end > size:
                    return  # still being written
                content = b""
                if length <= LONGEST:
                    content = file.read(length)
                    (checksum,) = struct.unpack("<I", file.read(_TAIL))
                    if masked(crc32c(content)) != checksum:
                        raise self._damaged("its checksum is wrong")
                else:
                    file.seek(end)
                self._offset, self.count = end, self.count + 1
                yield content

    def _damaged(self, reason: str) -> Damaged:
        return Damaged(
            f"{self.path}: record {self.count + 1} is damaged ({reason}); the {self.count} before "
            "it can be read"
        )


def framed(content: bytes) -> bytes:
    """Returns the bytes of a record."""
    length = struct.pack("<Q", len(content))
    checksums = (struct.pack("<I", masked(crc32c(one))) for one in (length, content))
    first, second = checksums
    return length + first + content + second


def masked(checksum: int) -> int:
    """Returns a checksum as it is stored, so that a checksum of one is another."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(content: bytes) -> int:
    """Returns the CRC-32C (Castagnoli) of bytes; that of b"123456789" is 0xE3069283."""
    checksum, table = 0xFFFFFFFF, _TABLE
    for byte in content:
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 255]
    return checksum ^ 0xFFFFFFFF


def _entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


_TABLE = [_entry(byte) for byte in range(256)]
