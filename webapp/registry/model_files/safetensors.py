"""Reader and checks of safetensors headers, without torch.

Layout: 8 bytes little-endian header length, a JSON header (name to dtype, shape, offsets), data.
Invariant: no data is read, and at most `MOST_HEADER_BYTES` of the header, so a file that lies about
its sizes costs nothing. In a file that passes, each byte of the data is in exactly one tensor
(https://huggingface.co/docs/safetensors/index#format).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from engine.config import bounded_json, git_lfs
from webapp.errors import Refused

MOST_HEADER_BYTES = 32_000_000
MOST_TENSORS = 200_000
MOST_NAME_CHARS = 1000
MOST_DIMENSIONS = 16
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits of one number, by dtype."""
_METADATA = "__metadata__"
_FIELDS = {"dtype", "shape", "data_offsets"}
_SAVE_AGAIN = "save the model again with save_pretrained(..., safe_serialization=True)"
_COPY_AGAIN = "copy the file again, whole"
_OTHERS = (
    (b"PK\x03\x04", "a zip archive (torch.save writes such)"),
    *((bytes([0x80, version]), "a pickle") for version in range(2, 6)),
    (b"\x1f\x8b", "a gzip file"),
    (b"GGUF", "a GGUF file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
)
_ZIP_END = b"PK\x05\x06"
_ZIP64_LOCATOR = b"PK\x06\x07"
_LOCATOR_BYTES = 20
_ZIP_TAIL_BYTES = _LOCATOR_BYTES + 22 + 65_535


class WeightsError(Refused, ValueError):
    """Raised for an invalid file of a model; the message names it, the fault and the remedy."""

    status = 422
    sentence = "This is no model that can be used."

    def __init__(self, file: str, what: str, remedy: str):
        self.file, self.what, self.remedy = file, what, remedy
        reason = f"{file}: {what}; {remedy}"
        self.problems = [{"path": "files", "value": file, "reason": reason}]
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Tensor:
    dtype: str
    shape: tuple[int, ...]
    size: int
    """Bytes."""
    begin: int
    """Where they begin in the file."""

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


def read_tensors(file: BinaryIO, size: int, name: str) -> dict[str, Tensor]:
    """Returns the tensors of an open safetensors file of `size` bytes, in the order of its header.

    Raises:
        WeightsError: it is no safetensors file, or contradicts itself; the message has `name`.
    """
    file.seek(0)
    start = file.read(git_lfs.START_BYTES)
    length = int.from_bytes(start[:8], "little")
    if not _is_plausible(start, length, size):
        _refuse_others(start, name)
    _refuse_length(length, size, name)
    file.seek(8)
    header = _parsed(file.read(length), name)
    if _is_zip_too(file, size):
        raise WeightsError(name, "this is a zip archive as well", _SAVE_AGAIN)
    return _tensors(header, 8 + length, size, name)


def _is_plausible(start: bytes, length: int, size: int) -> bool:
    """Returns whether a file starts as safetensors does: a header that is within it and begins with
    `{`. Its length may begin with any byte, those of other kinds (0x80, 0x1f 0x8b) among them."""
    return 2 <= length <= min(size - 8, MOST_HEADER_BYTES) and start[8:9] == b"{"


def _refuse_others(start: bytes, name: str) -> None:
    if git_lfs.is_pointer(start):
        raise WeightsError(name, f"is {git_lfs.WHAT}", git_lfs.REMEDY)
    for magic, what in _OTHERS:
        if start.startswith(magic):
            raise WeightsError(name, f"this is {what}, not safetensors", _SAVE_AGAIN)


def _refuse_length(length: int, size: int, name: str) -> None:
    claim = f"its header claims {length:,} bytes"
    if size < 10 or length < 2:
        raise WeightsError(name, f"{claim} of a {size:,} byte file: no safetensors", _SAVE_AGAIN)
    if length > MOST_HEADER_BYTES:
        raise WeightsError(name, f"{claim}, {MOST_HEADER_BYTES:,} at most are read", _SAVE_AGAIN)
    if length > size - 8:
        raise WeightsError(name, f"{claim} of a {size:,} byte file", _COPY_AGAIN)


def _parsed(text: bytes, name: str) -> dict[str, Any]:
    try:
        header = bounded_json.loads(
            text.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise WeightsError(name, f"its header cannot be read: {error}", _SAVE_AGAIN) from None
    if not isinstance(header, dict):
        raise WeightsError(name, "its header is no object", _SAVE_AGAIN)
    return header


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        duplicate = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"{duplicate[:100]!r} is given twice")
    return result


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _tensors(header: dict[str, Any], data: int, size: int, name: str) -> dict[str, Tensor]:
    """Returns the tensors of a header; `data` is where their bytes begin in a file of `size`."""
    metadata = header.pop(_METADATA, {})
    texts = isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    if not texts:
        raise WeightsError(name, f"{_METADATA} must hold texts only", _SAVE_AGAIN)
    if len(header) > MOST_TENSORS:
        what = f"{len(header):,} tensors, {MOST_TENSORS:,} at most are read"
        raise WeightsError(name, what, "save it in several files")
    tensors = {key: _tensor(key, entry, data, name) for key, entry in header.items()}
    _refuse_gaps({key: entry["data_offsets"] for key, entry in header.items()}, size - data, name)
    return tensors


def _tensor(key: str, entry: Any, data: int, name: str) -> Tensor:
    def wrong(what: str) -> WeightsError:
        return WeightsError(name, f"tensor {key[:100]!r}: {what}", _SAVE_AGAIN)

    if not key or len(key) > MOST_NAME_CHARS or not key.isprintable():
        raise wrong(f"names are 1 to {MOST_NAME_CHARS} printable characters")
    if not isinstance(entry, dict) or entry.keys() != _FIELDS:
        raise wrong(f"must have {', '.join(sorted(_FIELDS))} and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise wrong(f"dtype = {str(dtype)[:40]!r} is unknown")
    if not _are_sizes(shape) or len(shape) > MOST_DIMENSIONS:
        raise wrong(f"shape must be at most {MOST_DIMENSIONS} whole numbers from 0")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise wrong("data_offsets must be two whole numbers from 0, the smaller first")
    bits, size = math.prod(shape) * BITS[dtype], offsets[1] - offsets[0]
    if bits != size * 8:
        raise wrong(f"{dtype} of shape {shape} does not take the {size:,} bytes of its offsets")
    return Tensor(dtype, tuple(shape), size, data + offsets[0])


def _are_sizes(values: Any) -> bool:
    # A boolean is an int to Python, but no size.
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _refuse_gaps(offsets: Mapping[str, list[int]], data_bytes: int, name: str) -> None:
    """Raises `WeightsError` unless every byte of the data belongs to exactly one tensor."""
    reached = 0
    for key, (begin, end) in sorted(offsets.items(), key=lambda item: item[1]):
        if begin != reached:
            what = "overlaps the one before it" if begin < reached else "leaves a hole before it"
            where = f"begins at {begin:,}, after {reached:,}"
            raise WeightsError(name, f"tensor {key[:100]!r} {what}: it {where}", _SAVE_AGAIN)
        reached = end
    if reached != data_bytes:
        what = f"{reached:,} bytes of tensors declared, {data_bytes:,} present"
        raise WeightsError(name, what, _COPY_AGAIN)


def _is_zip_too(file: BinaryIO, size: int) -> bool:
    """Returns whether the file is also a zip archive, which is read from the end (polyglot)."""
    tail_start = max(0, size - _ZIP_TAIL_BYTES)
    file.seek(tail_start)
    tail = file.read(_ZIP_TAIL_BYTES)
    at = len(tail)
    while (at := tail.rfind(_ZIP_END, 0, at)) >= 0:
        if len(tail) - at >= 22:
            if tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_ZIP64_LOCATOR):
                return True  # zip64: its sizes are elsewhere
            (directory_bytes,) = struct.unpack_from("<I", tail, at + 12)
            begin = tail_start + at - directory_bytes
            file.seek(max(0, begin))
            if begin >= 0 and directory_bytes and file.read(4) == b"PK\x01\x02":
                return True
    return False
