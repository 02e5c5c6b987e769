"""Reader of a GGUF file's header: metadata and descriptions of its tensors.

Layout (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, version, number of
tensors, number of metadata entries, the entries, the descriptions, padding, data.

Invariant: nothing is allocated or read on the word of the file alone. Every count is compared with
bounds and with the bytes that are left. In a file that passes, each tensor lies inside the file, at
an aligned offset, without overlap or hole, and has exactly the bytes of its shape and type.

`gguf.GGUFReader` is not used for this: it bounds no count (a number of entries of 2^60 loops, a
dimension of 2^63 overflows) and keeps two arrays per element of the metadata, about 1 kB together:
0.7 GB for a vocabulary of 262,144 tokens. The tests hold both readers equal.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from gguf.constants import (
    GGML_QUANT_SIZES,
    GGUF_DEFAULT_ALIGNMENT,
    GGMLQuantizationType,
    GGUFValueType,
)

from engine.config import git_lfs
from engine.policy.models.gguf.errors import CONVERT_AGAIN, COPY_AGAIN, refusal, shown
from engine.policy.models.load import ModelError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ENTRIES = 10_000
MOST_TENSORS = 20_000
MOST_ELEMENTS = 3_000_000
"""Most elements of all arrays of the metadata together."""
MOST_HEADER_BYTES = 256_000_000
MOST_TEXT_BYTES = 16_000_000
MOST_NAME_BYTES = 1000
MOST_DIMENSIONS = 4
MOST_ALIGNMENT = 1 << 20
MOST_PARAMETERS = 1 << 40

Value = bool | int | float | str | list[str] | np.ndarray
"""A value of the metadata. An array of numbers is a NumPy array, one of texts a list."""

_NUMBERS = {
    GGUFValueType.UINT8: "<u1",
    GGUFValueType.INT8: "<i1",
    GGUFValueType.UINT16: "<u2",
    GGUFValueType.INT16: "<i2",
    GGUFValueType.UINT32: "<u4",
    GGUFValueType.INT32: "<i4",
    GGUFValueType.UINT64: "<u8",
    GGUFValueType.INT64: "<i8",
    GGUFValueType.FLOAT32: "<f4",
    GGUFValueType.FLOAT64: "<f8",
    GGUFValueType.BOOL: "?",
}
_SCALARS = {kind: np.dtype(code) for kind, code in _NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where one tensor lies and what it is."""

    name: str
    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    """Outermost axis first, as in PyTorch; GGUF stores the reverse."""
    start: int
    """First byte, from the beginning of the file."""
    size: int
    """Bytes."""

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        return math.prod(self.shape[:-1])


@dataclass(frozen=True, slots=True)
class Header:
    """All of a file except its data."""

    metadata: dict[str, Value]
    tensors: dict[str, TensorInfo]


def read_header(path: Path, file: BinaryIO) -> Header:
    """Returns the checked header of an open GGUF file; `path` is named in errors.

    Raises:
        ModelError: it is no GGUF file, or contradicts itself, or exceeds a bound.
    """
    cursor = _Cursor(path, file)
    entries, tensors = _read_start(cursor)
    metadata: dict[str, Value] = {}
    for _ in range(entries):
        key = cursor.text("a name of the metadata", MOST_NAME_BYTES)
        if not key or not key.isprintable():
            raise cursor.refusal(shown(key), "is no name of metadata", CONVERT_AGAIN)
        if key in metadata:
            raise cursor.refusal(key, "is given twice", CONVERT_AGAIN)
        metadata[key] = _read_value(cursor, key)
    infos = [_read_info(cursor) for _ in range(tensors)]
    return Header(metadata, _place(cursor, infos, _alignment(cursor, metadata)))


class _Cursor:
    """Position in the header, which never passes the end of the file."""

    def __init__(self, path: Path, file: BinaryIO):
        self.path, self._file = path, file
        self.size = os.fstat(file.fileno()).st_size
        self.at = 0
        self.elements_left = MOST_ELEMENTS

    def take(self, count: int, what: str) -> bytes:
        """Returns the next `count` bytes, those of `what`."""
        if count > self.size - self.at:
            fault = f"{count:,} bytes declared at {self.at:,} of a {self.size:,} byte file"
            raise self.refusal(what, fault, COPY_AGAIN)
        if self.at + count > MOST_HEADER_BYTES:
            fault = f"the header exceeds {MOST_HEADER_BYTES:,} bytes"
            raise self.refusal(what, fault, CONVERT_AGAIN)
        data = self._file.read(count)
        if len(data) != count:
            raise self.refusal(what, "the file became shorter", COPY_AGAIN)
        self.at += count
        return data

    def number(self, code: str, what: str) -> int:
        (value,) = struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))
        return value

    def text(self, what: str, most: int = MOST_TEXT_BYTES) -> str:
        """Returns a text: its number of bytes, then UTF-8."""
        length = self.number("Q", what)
        if length > most:
            fault = f"a text of {length:,} bytes, {most:,} at most are read"
            raise self.refusal(what, fault, CONVERT_AGAIN)
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.refusal(
                what, f"is no text in UTF-8: {error.reason}", CONVERT_AGAIN
            ) from None

    def refusal(self, what: str, fault: str, remedy: str) -> ModelError:
        return refusal(self.path, what, fault, remedy)


def _read_start(cursor: _Cursor) -> tuple[int, int]:
    """Returns the numbers of metadata entries and of tensors."""
    magic = cursor.take(min(4, cursor.size), "its first bytes")
    if magic != MAGIC:
        if git_lfs.is_pointer_file(cursor.path):
            raise cursor.refusal("its first bytes", f"this is {git_lfs.WHAT}", git_lfs.REMEDY)
        raise cursor.refusal("its first bytes", f"{shown(magic)}, not GGUF", "give a GGUF file")
    version = cursor.number("I", "version")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
        fault = (
            "is big-endian" if swapped else f"{version}, read are {VERSIONS[0]} and {VERSIONS[1]}"
        )
        raise cursor.refusal("version", fault, CONVERT_AGAIN)
    tensors, entries = cursor.number("Q", "tensor_count"), cursor.number("Q", "kv_count")
    for what, count, most in (
        ("tensor_count", tensors, MOST_TENSORS),
        ("kv_count", entries, MOST_ENTRIES),
    ):
        if not 0 < count <= most:
            raise cursor.refusal(what, f"{count:,}, 1 to {most:,} are read", CONVERT_AGAIN)
    return entries, tensors


def _read_value(cursor: _Cursor, key: str) -> Value:
    kind = cursor.number("I", key)
    if kind == GGUFValueType.STRING:
        return cursor.text(key)
    if kind == GGUFValueType.ARRAY:
        return _read_array(cursor, key)
    dtype = _dtype(cursor, key, kind)
    return np.frombuffer(_checked(cursor, key, dtype, 1), dtype)[0].item()


def _read_array(cursor: _Cursor, key: str) -> Value:
    kind, count = cursor.number("I", key), cursor.number("Q", key)
    if kind == GGUFValueType.ARRAY:
        raise cursor.refusal(
            key, "is an array of arrays, which no supported model has", CONVERT_AGAIN
        )
    if count > cursor.elements_left:
        fault = f"an array of {count:,}, {MOST_ELEMENTS:,} elements at most are read in all"
        raise cursor.refusal(key, fault, CONVERT_AGAIN)
    cursor.elements_left -= count
    if kind == GGUFValueType.STRING:
        return [cursor.text(key) for _ in range(count)]
    dtype = _dtype(cursor, key, kind)
    return np.frombuffer(_checked(cursor, key, dtype, count), dtype)


def _dtype(cursor: _Cursor, key: str, kind: int) -> np.dtype:
    dtype = _SCALARS.get(kind)  # type: ignore[call-overload]
    if dtype is None:
        raise cursor.refusal(key, f"is of type {kind}, which GGUF does not have", CONVERT_AGAIN)
    return dtype


def _checked(cursor: _Cursor, key: str, dtype: np.dtype, count: int) -> bytes:
    data = cursor.take(dtype.itemsize * count, key)
    if dtype.kind == "b" and data.strip(b"\0\1"):
        raise cursor.refusal(key, "is a truth value other than 0 and 1", CONVERT_AGAIN)
    return data


@dataclass(frozen=True, slots=True)
class _Described:
    """A tensor as described, its offset not yet checked."""

    name: str
    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    offset: int
    size: int


def _read_info(cursor: _Cursor) -> _Described:
    name = cursor.text("a tensor's name", MOST_NAME_BYTES)
    what = f"tensor {shown(name)}"
    if not name or not name.isprintable():
        raise cursor.refusal(what, "is no name of a tensor", CONVERT_AGAIN)
    dimensions = cursor.number("I", what)
    if not 0 < dimensions <= MOST_DIMENSIONS:
        fault = f"has {dimensions:,} dimensions, 1 to {MOST_DIMENSIONS} are read"
        raise cursor.refusal(what, fault, CONVERT_AGAIN)
    shape = tuple(cursor.number("Q", what) for _ in range(dimensions))[::-1]
    kind, offset = cursor.number("I", what), cursor.number("Q", what)
    if not all(0 < size <= MOST_PARAMETERS for size in shape) or math.prod(shape) > MOST_PARAMETERS:
        fault = f"shape = {shown(shape)} is empty or exceeds {MOST_PARAMETERS:,} numbers"
        raise cursor.refusal(what, fault, CONVERT_AGAIN)
    known = GGMLQuantizationType._value2member_map_.get(kind)
    if not isinstance(known, GGMLQuantizationType):
        raise cursor.refusal(what, f"is of type {kind}, which is unknown", CONVERT_AGAIN)
    in_block, block_bytes = GGML_QUANT_SIZES[known]
    if shape[-1] % in_block:
        fault = f"rows of {shape[-1]:,} numbers are no whole {known.name} blocks of {in_block}"
        raise cursor.refusal(what, fault, CONVERT_AGAIN)
    return _Described(name, known, shape, offset, math.prod(shape) // in_block * block_bytes)


def _alignment(cursor: _Cursor, metadata: dict[str, Value]) -> int:
    value = metadata.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
    if type(value) is not int or not 0 < value <= MOST_ALIGNMENT or value & (value - 1):
        fault = f"{shown(value)} is no power of two up to {MOST_ALIGNMENT:,}"
        raise cursor.refusal("general.alignment", fault, CONVERT_AGAIN)
    return value


def _place(cursor: _Cursor, infos: list[_Described], alignment: int) -> dict[str, TensorInfo]:
    """Returns the tensors with their positions, by name, in the order of the file."""
    data_start = cursor.at + -cursor.at % alignment
    tensors: dict[str, TensorInfo] = {}
    before, reached = "", 0
    for one in sorted(infos, key=lambda info: info.offset):
        what = f"tensor {shown(one.name)}"

        def wrong(fault: str, remedy: str = CONVERT_AGAIN, what: str = what) -> ModelError:
            return cursor.refusal(what, fault, remedy)

        _refuse_position(one, reached, before, alignment, wrong)
        start = data_start + one.offset
        if start + one.size > cursor.size:
            fault = f"ends at byte {start + one.size:,} of a {cursor.size:,} byte file"
            raise wrong(fault, COPY_AGAIN)
        if one.name in tensors:
            raise wrong("is given twice")
        tensors[one.name] = TensorInfo(one.name, one.kind, one.shape, start, one.size)
        before, reached = one.name, one.offset + one.size
    return tensors


def _refuse_position(
    one: _Described, reached: int, before: str, alignment: int, wrong: Callable[[str], ModelError]
) -> None:
    if one.offset % alignment:
        raise wrong(f"offset {one.offset:,} is no multiple of the alignment {alignment}")
    if one.offset < reached:
        raise wrong(f"offset {one.offset:,} lies inside tensor {shown(before)}")
    if one.offset >= reached + alignment:
        raise wrong(f"offset {one.offset:,} leaves a hole after byte {reached:,} of the data")
