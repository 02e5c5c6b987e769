"""Values of a tensor: bytes of a GGUF file as numbers of the dtype in which they are stored.

Stored dtype, by type in the file:

- F32, F16 and BF16 stay what they are: every bit is kept.
- Quantised values become F16. A block's scale is F16 itself and is multiplied by whole numbers of
  few bits, so a value is a multiple of 2^-24, the smallest F16 there is: none underflows, and each
  is rounded by at most 2^-11 of itself. BF16 would round by 2^-9, F32 would take twice the bytes to
  hold digits that quantisation has already removed.
- A quantised tensor with a value above 65,504, the largest F16, becomes F32 as a whole.

All functions take groups of rows, so memory is bounded whatever a tensor's size.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from engine.policy.models.gguf.errors import CONVERT_AGAIN, COPY_AGAIN, refusal, shown
from engine.policy.models.gguf.header import TensorInfo
from engine.policy.models.load import ModelError

LARGEST_F16 = 65504.0

_PLAIN = ("F32", "F16", "BF16")
_QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
SUPPORTED = (*_PLAIN, *_QUANTISED)


class Dtype(Enum):
    """A dtype of safetensors, by the name of its header."""

    F32 = "F32"
    F16 = "F16"
    BF16 = "BF16"

    @property
    def bytes(self) -> int:
        return 4 if self is Dtype.F32 else 2


class OutOfRangeError(ValueError):
    """A dequantised value exceeds `LARGEST_F16`."""


def refuse_type(path: Path, info: TensorInfo) -> None:
    """Raises `ModelError` unless values of this tensor's type can be read."""
    if info.kind.name not in SUPPORTED:
        fault = f"is of type {info.kind.name}; supported are {', '.join(SUPPORTED)}"
        raise refusal(path, f"tensor {info.name}", fault, "give a file of one of these")


def is_quantised(info: TensorInfo) -> bool:
    return info.kind.name in _QUANTISED


def expected_dtype(info: TensorInfo) -> Dtype:
    """Returns the stored dtype, unless a quantised value exceeds F16."""
    return Dtype.F16 if is_quantised(info) else Dtype(info.kind.name)


def row_bytes(info: TensorInfo) -> int:
    """Returns the bytes of one row in the file."""
    in_block, block_bytes = GGML_QUANT_SIZES[info.kind]
    return info.columns // in_block * block_bytes


def stored_values(path: Path, info: TensorInfo, rows: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Returns rows of bytes as stored numbers (rows, columns); BF16 as `uint16`, which NumPy lacks.

    Raises:
        OutOfRangeError: a value does not fit into F16.
        ModelError: a value is not finite.
    """
    if not is_quantised(info):
        values = rows.view("<f4" if info.kind == GGMLQuantizationType.F32 else "<u2")
        _refuse_not_finite(path, info, as_float32(values, Dtype(info.kind.name)))
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        values = quants.dequantize(rows, info.kind)
    _refuse_not_finite(path, info, values)
    if dtype is Dtype.F32:
        return values
    if np.abs(values).max() > LARGEST_F16:
        raise OutOfRangeError(info.name)
    return values.astype("<f2")


def as_float32(values: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Returns stored numbers as F32."""
    if dtype is Dtype.BF16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    if dtype is Dtype.F16:
        return values.view("<f2").astype(np.float32)
    return values


def _refuse_not_finite(path: Path, info: TensorInfo, values: np.ndarray) -> None:
    if np.isfinite(values).all():
        return
    value: ModelError = refusal(
        path,
        f"tensor {info.name}",
        f"holds {shown(float(values[~np.isfinite(values)][0]))}, which is no finite number",
        f"{COPY_AGAIN}, or {CONVERT_AGAIN}",
    )
    raise value
