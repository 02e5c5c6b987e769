"""Writer of a model's tensors as safetensors, tensor by tensor.

Invariant: at most one group of rows is in memory. A file's header is written last, over a reserved
range, because a quantised tensor's dtype is known only when all its values are
(`dequantise.OutOfRangeError`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.policy.models.gguf.architectures.plan import Source
from engine.policy.models.gguf.dequantise import (
    Dtype,
    OutOfRangeError,
    as_float32,
    expected_dtype,
    is_quantised,
    stored_values,
)
from engine.policy.models.gguf.file import GgufFile

SHARD_BYTES = 2_000_000_000
"""Most bytes of one weight file, unless a single tensor has more."""
_METADATA = {"format": "pt"}
_ENTRY_BYTES = 200
_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Written:
    """Dtypes of the tensors that were written."""

    matrices: frozenset[Dtype]
    """Of all tensors of two axes."""


def write_weights(
    file: GgufFile,
    sources: Sequence[Source],
    folder: Path,
    progress: Callable[[int], None],
    shard_bytes: int = SHARD_BYTES,
) -> Written:
    """Writes all tensors into `folder`, as one file or as shards with their index. `progress` is
    called with the bytes of the GGUF file that a tensor had.

    Raises:
        ModelError: a tensor cannot be read, or holds values that are not finite.
    """
    shards = _shards(sorted(sources, key=_alignment_order), shard_bytes)
    names = [
        _FILE if len(shards) == 1 else f"model-{n:05}-of-{len(shards):05}.safetensors"
        for n in range(1, len(shards) + 1)
    ]
    dtypes: dict[str, Dtype] = {}
    for name, shard in zip(names, shards, strict=True):
        dtypes |= _write_file(file, shard, folder / name, progress)
    if len(shards) > 1:
        _write_index(folder, dict(zip(names, shards, strict=True)), dtypes)
    matrices = {dtypes[s.expected.name] for s in sources if len(s.expected.shape) > 1}
    return Written(frozenset(matrices))


def _alignment_order(source: Source) -> int:
    """F32 first, then quantised tensors, whose sizes are multiples of 64 bytes in any dtype, then
    the others: no number crosses a multiple of its size."""
    if source.expected.offset or expected_dtype(source.info) is Dtype.F32:
        return 0
    return 1 if is_quantised(source.info) else 2


def _shards(sources: Sequence[Source], most: int) -> list[list[Source]]:
    shards: list[list[Source]] = [[]]
    used = 0
    for source in sources:
        size = source.info.rows * source.info.columns * _first_dtype(source).bytes
        if shards[-1] and used + size > most:
            shards.append([])
            used = 0
        shards[-1].append(source)
        used += size
    return shards


def _first_dtype(source: Source) -> Dtype:
    return Dtype.F32 if source.expected.offset else expected_dtype(source.info)


def _write_file(
    file: GgufFile, sources: Sequence[Source], target: Path, progress: Callable[[int], None]
) -> dict[str, Dtype]:
    reserved = sum(_ENTRY_BYTES + len(s.expected.name) for s in sources) + 100
    reserved += -reserved % 8
    header: dict[str, object] = {"__metadata__": _METADATA}
    dtypes: dict[str, Dtype] = {}
    with target.open("wb") as output:
        data_start = 8 + reserved
        output.seek(data_start)
        for source in sources:
            begin = output.tell()
            dtype = _write_tensor(file, source, output)
            offsets = [begin - data_start, output.tell() - data_start]
            shape = list(source.expected.shape)
            header[source.expected.name] = {
                "dtype": dtype.value, "shape": shape, "data_offsets": offsets
            }  # fmt: skip
            dtypes[source.expected.name] = dtype
            progress(source.info.size)
        text = json.dumps(header, separators=(",", ":")).encode()
        assert len(text) <= reserved, "an entry is bounded by its name and six numbers"
        output.seek(0)
        output.write(struct.pack("<Q", reserved) + text.ljust(reserved))
    return dtypes


def _write_tensor(file: GgufFile, source: Source, output: BinaryIO) -> Dtype:
    begin, dtype = output.tell(), _first_dtype(source)
    try:
        _write_values(file, source, output, dtype)
    except OutOfRangeError:
        dtype = Dtype.F32
        output.seek(begin)
        _write_values(file, source, output, dtype)
    return dtype


def _write_values(file: GgufFile, source: Source, output: BinaryIO, dtype: Dtype) -> None:
    expected, info = source.expected, source.info
    if len(info.shape) == 1 and expected.rotary_head:
        values = _stored(file, source, next(file.rows(info)), dtype)
        output.write(_halves(values.reshape(-1, 1), expected.rotary_head).tobytes())
        return
    for rows in file.rows(info, expected.rotary_head or 1):
        ordered = _halves(rows, expected.rotary_head) if expected.rotary_head else rows
        output.write(np.ascontiguousarray(_stored(file, source, ordered, dtype)).data)


def _stored(file: GgufFile, source: Source, rows: np.ndarray, dtype: Dtype) -> np.ndarray:
    values = stored_values(file.path, source.info, rows, dtype)
    if not source.expected.offset:
        return values
    held = Dtype.F32 if is_quantised(source.info) else Dtype(source.info.kind.name)
    return as_float32(values, held) + np.float32(source.expected.offset)


def _halves(rows: np.ndarray, head: int) -> np.ndarray:
    """Returns rows (heads * head, ...) of interleaved rotary pairs with each head's first numbers
    before its second ones."""
    heads = rows.reshape(-1, head // 2, 2, rows.shape[-1])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(rows.shape)


def _write_index(folder: Path, shards: dict[str, list[Source]], dtypes: dict[str, Dtype]) -> None:
    total, weight_map = 0, {}
    for name, shard in shards.items():
        for source in shard:
            weight_map[source.expected.name] = name
            size = dtypes[source.expected.name].bytes
            total += source.info.rows * source.info.columns * size
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / _INDEX).write_text(json.dumps(index, indent=1) + "\n")
