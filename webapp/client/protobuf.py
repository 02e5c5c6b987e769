"""Messages of protocol buffers by the numbers of their fields, without a schema. Pure.

Source: https://protobuf.dev/programming-guides/encoding. Files of other trackers are read and
written so without their libraries, whose pins would meet those of the program that is tracked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

Value = int | bytes
"""An integer of a varint; the bytes of anything else."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10


class Malformed(ValueError):
    """Raised for bytes that are no message."""


class Message:
    """Fields of a message; one that is absent has its type's default."""

    def __init__(self, content: bytes):
        """Raises `Malformed`."""
        self._fields: dict[int, list[Value]] = {}
        for number, value in _fields(content):
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def raw(self, number: int) -> bytes:
        value = self._last(number, b"")
        return value if isinstance(value, bytes) else b""

    def text(self, number: int) -> str:
        return self.raw(number).decode("utf-8", "replace")

    def integer(self, number: int) -> int:
        """Returns a signed integer."""
        value = self._last(number, 0)
        value = value if isinstance(value, int) else 0
        return value - 2**64 if value >= 2**63 else value

    def message(self, number: int) -> Message:
        return Message(self.raw(number))

    def messages(self, number: int) -> Iterator[Message]:
        return (Message(one) for one in self._raws(number))

    def texts(self, number: int) -> list[str]:
        return [one.decode("utf-8", "replace") for one in self._raws(number)]

    def double(self, number: int) -> float:
        return self._number(number, "d")

    def single(self, number: int) -> float:
        return self._number(number, "f")

    def doubles(self, number: int) -> list[float]:
        """Returns a repeated field, packed or not."""
        return [one for raw in self._raws(number) for one in unpacked(raw, "d")]

    def singles(self, number: int) -> list[float]:
        return [one for raw in self._raws(number) for one in unpacked(raw, "f")]

    def _number(self, number: int, code: str) -> float:
        raw = self.raw(number)
        return unpacked(raw, code)[-1] if raw else 0.0

    def _raws(self, number: int) -> Iterator[bytes]:
        return (one for one in self._fields.get(number, ()) if isinstance(one, bytes))

    def _last(self, number: int, default: Value) -> Value:
        return self._fields.get(number, (default,))[-1]


def unpacked(raw: bytes, code: str) -> list[Any]:
    """Returns the little-endian numbers of a `struct` code. Raises `Malformed` for a part of
    one."""
    size = struct.calcsize(code)
    if len(raw) % size:
        raise Malformed(f"{len(raw)} bytes are no numbers of {size}")
    return list(struct.unpack(f"<{len(raw) // size}{code}", raw))


def _fields(raw: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(raw, at)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise Malformed(f"field {number} has the unknown type {kind}")
        if at + size > len(raw):
            raise Malformed(f"field {number} is cut off")
        yield number, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Returns the integer that begins at a byte, and where the next field does."""
    value = 0
    for index, byte in enumerate(raw[at : at + _LONGEST_VARINT]):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value & (2**64 - 1), at + index + 1
    raise Malformed("an integer is cut off")


def field(number: int, value: int | float | str | bytes) -> bytes:
    """Returns a field: an integer as a varint, a float as a double."""
    if isinstance(value, float):
        return encoded_varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    if isinstance(value, int):
        return encoded_varint(number << 3 | _VARINT) + encoded_varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return encoded_varint(number << 3 | _BYTES) + encoded_varint(len(raw)) + raw


def packed(number: int, values: Iterable[float], code: str) -> bytes:
    """Returns a repeated field of numbers of a `struct` code."""
    return field(number, b"".join(struct.pack(f"<{code}", one) for one in values))


def encoded_varint(value: int) -> bytes:
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
