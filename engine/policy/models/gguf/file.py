"""An open GGUF file whose header has passed its checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.policy.models.gguf.dequantise import (
    Dtype,
    as_float32,
    raw_rows,
    refuse_type,
    stored_values,
)
from engine.policy.models.gguf.header import TensorInfo, read_header
from engine.policy.models.gguf.metadata import Metadata


@dataclass(frozen=True, slots=True)
class GgufFile:
    """Header of a file, and access to its tensors."""

    path: Path
    stream: BinaryIO
    metadata: Metadata
    tensors: dict[str, TensorInfo]

    def values(self, name: str) -> np.ndarray:
        """Returns all values of a small tensor as F32, in the shape (rows, columns). Raises
        `ModelError`."""
        info = self.tensors[name]
        refuse_type(self.path, info)
        dtype = Dtype(info.kind.name) if info.kind.name in Dtype.__members__ else Dtype.F32
        return np.concatenate(
            [
                as_float32(stored_values(self.path, info, rows, dtype), dtype)
                for rows in raw_rows(self.path, self.stream, info)
            ]
        )


def read_file(path: Path, stream: BinaryIO) -> GgufFile:
    """Returns an open file, its header checked.

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
    return GgufFile(path, stream, metadata, header.tensors)
