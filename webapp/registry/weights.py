"""What a safetensors file says of itself, read without torch.

Layout: 8 bytes little-endian header length, a JSON header (name to dtype, shape, offsets), data.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

FILE_NAME = "model.safetensors"
_MAX_HEADER = 100_000_000


class WeightsError(ValueError):
    """A file that is not what a model directory must hold; the message names it."""


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Weights:
    sha256: str
    parameters: int


def inspect(directory: Path) -> Weights:
    """Digest and number of parameters of `directory/model.safetensors`.

    Raises:
        WeightsError: no such file, or not a whole safetensors file.
    """
    path = directory / FILE_NAME
    try:
        with path.open("rb") as file:
            tensors = _header(file, path)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"{path}: {error.strerror}") from None
    return Weights(digest, sum(math.prod(tensor.shape) for tensor in tensors.values()))


def _header(file: BinaryIO, path: Path) -> dict[str, _Tensor]:
    size = path.stat().st_size
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(_MAX_HEADER, size - 8):
        raise WeightsError(f"{path}: its header claims {length} bytes of a {size} byte file")
    try:
        header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        tensors = {name: msgspec.json.decode(raw, type=_Tensor) for name, raw in header.items()}
    except msgspec.DecodeError as error:
        raise WeightsError(f"{path}: its header cannot be read: {error}") from None
    end = max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if end != size - 8 - length:
        raise WeightsError(f"{path}: {end} bytes of tensors announced, {size - 8 - length} there")
    return tensors
