"""What is written for a GGUF file: settings of the model, and the source of each of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.policy.models.gguf.errors import CONVERT_AGAIN, refusal, shown
from engine.policy.models.gguf.header import TensorInfo
from engine.policy.models.gguf.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor that a model of the architecture has."""

    name: str
    """In Hugging Face's layout."""
    shape: tuple[int, ...]
    rotary_head: int = 0
    """Rows of a head whose rotary pairs llama.cpp stores interleaved; 0 if the order is kept."""
    offset: float = 0.0
    """Added to every value, which is then stored as F32."""


@dataclass(frozen=True, slots=True)
class Source:
    """An expected tensor with its description in the file."""

    expected: Expected
    info: TensorInfo


@dataclass(frozen=True, slots=True)
class Plan:
    """A model to be written."""

    config: dict[str, Any]
    """Of config.json, except the ids of special tokens and the dtype."""
    sources: list[Source]
    float16_overflows: bool = False
    """Whether activations of the architecture exceed F16, so that it cannot run in it."""


def sources(
    metadata: Metadata,
    tensors: Mapping[str, TensorInfo],
    expected: Mapping[str, Expected],
    unused: frozenset[str] = frozenset(),
) -> list[Source]:
    """Returns the sources of a model's tensors; `expected` is by their names in the file, `unused`
    names tensors that are read elsewhere.

    Raises:
        ModelError: a tensor is missing, of another shape, or not one of the architecture.
    """
    for name, info in tensors.items():
        if name not in expected and name not in unused:
            fault = "is no tensor of this architecture as it is supported"
            raise refusal(metadata.path, f"tensor {shown(name)}", fault, "give a plain model")
        if name in expected and info.shape != expected[name].shape:
            fault = f"is of shape {info.shape}, by the metadata it is {expected[name].shape}"
            raise refusal(metadata.path, f"tensor {name}", fault, CONVERT_AGAIN)
    if missing := next((name for name in expected if name not in tensors), None):
        raise refusal(metadata.path, f"tensor {missing}", "is missing", CONVERT_AGAIN)
    return [Source(one, tensors[name]) for name, one in expected.items()]
