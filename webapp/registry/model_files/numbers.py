"""Numbers of a model's weights: those that are not finite, and two tensors that must be one.

Invariants: a block of a file is in memory at a time; at most `MOST_BYTES` are read of a model, so
that a check of a large one ends. The engine checks all numbers of every model that it loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import numpy as np

from engine.resources.model_files.weights_fit import BUFFERS
from webapp.registry.model_files.safetensors import Tensor, WeightsError

MOST_BYTES = 4 << 30
_BLOCK = 1 << 22
_KINDS: dict[str, tuple[type[np.unsignedinteger], int]] = {
    "F64": (np.uint64, 0x47EF_FFFF_F000_0000),
    "F32": (np.uint32, 0x7F80_0000),
    "F16": (np.uint16, 0x7C00),
    "BF16": (np.uint16, 0x7F80),
    "F8_E5M2": (np.uint8, 0x7C),
    "F8_E4M3": (np.uint8, 0x7F),
}
"""By dtype, the integer of as many bits, and the smallest one, without the bit of the sign, that is
no finite number of float32, as which models run: floats are in the order of their bits."""


def refuse_not_finite(
    file: BinaryIO, tensors: Mapping[str, Tensor], name: str, most: int = MOST_BYTES
) -> int:
    """Checks the numbers of an open file's tensors, of `most` bytes; returns how many it read.

    Raises:
        WeightsError: one is NaN or an infinity; names its tensor and its place.
    """
    read = 0
    for key, tensor in tensors.items():
        if tensor.dtype not in _KINDS or BUFFERS.search(key) or read + tensor.size > most:
            continue
        kind, least = _KINDS[tensor.dtype]
        unsigned = kind(np.iinfo(kind).max >> 1)
        done = 0
        for block in _blocks(file, tensor):
            sizes = np.frombuffer(block, kind) & unsigned
            if sizes.size and sizes.max() >= least:
                number = done + int((sizes >= least).argmax())
                place = [int(n) for n in np.unravel_index(number, tensor.shape)]
                what = f"tensor {key[:100]!r} holds NaN or an infinity at {place}"
                if tensor.dtype == "F64":
                    what += ", or a number beyond float32"
                remedy = "save the model again, from before it diverged"
                raise WeightsError(name, what, remedy)
            done += sizes.size
        read += tensor.size
    return read


def are_equal(file: BinaryIO, tensor: Tensor, other_file: BinaryIO, other: Tensor) -> bool:
    """Returns whether two tensors hold the same numbers; also true of those of other shapes or
    dtypes, and of more than `MOST_BYTES`, which it does not compare."""
    comparable = (tensor.dtype, tensor.shape) == (other.dtype, other.shape)
    if not comparable or tensor.dtype not in _KINDS or tensor.size > MOST_BYTES:
        return True
    kind = _KINDS[tensor.dtype][0]
    unsigned = kind(np.iinfo(kind).max >> 1)  # 0.0 and -0.0 are equal
    for block, another in zip(_blocks(file, tensor), _blocks(other_file, other), strict=True):
        if block == another:
            continue
        one, two = np.frombuffer(block, kind), np.frombuffer(another, kind)
        if ((one != two) & (((one | two) & unsigned) != 0)).any():
            return False
    return True


def _blocks(file: BinaryIO, tensor: Tensor) -> Iterator[bytes]:
    for start in range(0, tensor.size, _BLOCK):
        file.seek(tensor.begin + start)
        yield file.read(min(_BLOCK, tensor.size - start))
