"""An open GGUF file whose header has passed its checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.policy.models.gguf.dequantise import (
    Dtype,
    as_float32,
    refuse_type,
    row_bytes,
    stored_values,
)
from engine.policy.models.gguf.errors import COPY_AGAIN, refusal
from engine.policy.models.gguf.header import TensorInfo, read_header
from engine.policy.models.gguf.metadata import Metadata

CHUNK_NUMBERS = 1 << 22
"""Numbers of a tensor that are read at once: 16 MiB as F32."""


@dataclass(frozen=True, slots=True)
class GgufFile:
    """Header of a file, and access to its tensors."""

    path: Path
    stream: BinaryIO
    metadata: Metadata
    tensors: dict[str, TensorInfo]
    chunk_numbers: int

    def rows(self, info: TensorInfo, group: int = 1) -> Iterator[np.ndarray]:
        """Yields the rows of a tensor as bytes (rows, row_bytes), in multiples of `group` rows.

        Raises:
            ModelError: the file ends earlier.
        """
        per_row = row_bytes(info)
        at_once = max(1, self.chunk_numbers // info.columns // group) * group
        self.stream.seek(info.start)
        for first in range(0, info.rows, at_once):
            count = min(at_once, info.rows - first)
            data = self.stream.read(count * per_row)
            if len(data) != count * per_row:
                what, fault = f"tensor {info.name}", "the file became shorter"
                raise refusal(self.path, what, fault, COPY_AGAIN)
            yield np.frombuffer(data, np.uint8).reshape(count, per_row)

    def values(self, name: str) -> np.ndarray:
        """Returns all values of a small tensor as F32, in the shape (rows, columns). Raises
        `ModelError`."""
        info = self.tensors[name]
        refuse_type(self.path, info)
        dtype = Dtype(info.kind.name) if info.kind.name in Dtype.__members__ else Dtype.F32
        return np.concatenate(
            [
                as_float32(stored_values(self.path, info, rows, dtype), dtype)
                for rows in self.rows(info)
            ]
        )


def read_file(path: Path, stream: BinaryIO, chunk_numbers: int = CHUNK_NUMBERS) -> GgufFile:
    """Returns an open file, its header checked; `chunk_numbers` bounds what is read at once.

    Raises:
        ModelError: it is no GGUF file, or is damaged, or is one part of a split model, or has
            values of an unsupported type.
    """
    header = read_header(path, stream)
    metadata = Metadata(path, header.metadata)
    parts = metadata.integer("split.count", 0, least=0)
    if parts > 1:
        fault = f"the model is split into {parts} files, which is not supported"
        raise metadata.wrong("split.count", fault, "join them with llama.cpp's gguf-split --merge")
    for info in header.tensors.values():
        refuse_type(path, info)
    return GgufFile(path, stream, metadata, header.tensors, chunk_numbers)
