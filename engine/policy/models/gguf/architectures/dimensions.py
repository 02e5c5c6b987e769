"""Sizes and rotary settings that all supported architectures have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.policy.models.gguf.header import TensorInfo
from engine.policy.models.gguf.metadata import Metadata

MOST_LAYERS = 1000
MOST_HEADS = 1024

_READ = (
    "block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
    "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.value_length", "attention.layer_norm_rms_epsilon", "attention.causal",
    "attention.sliding_window", "expert_count", "expert_used_count", "rope.dimension_count",
    "rope.freq_base", "rope.scale_linear", "rope.scaling.type", "rope.scaling.factor",
    "rope.scaling.original_context_length", "rope.scaling.finetuned", "tensor_data_layout",
)  # fmt: skip
"""Entries of every architecture, without its name. Any other one is refused: it may change what the
model computes."""


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Sizes of a decoder."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    groups: int
    """Heads of keys and values."""
    head: int
    """Numbers of one head."""
    vocabulary: int
    context: int
    """Tokens."""
    epsilon: float
    tied: bool
    """Whether the output layer is the embedding."""


def read_dimensions(
    metadata: Metadata, tensors: Mapping[str, TensorInfo], more: tuple[str, ...] = ()
) -> Dimensions:
    """Returns the sizes that a file states; `more` are entries that only its architecture has.

    Raises:
        ModelError: an entry is missing, wrong, or not supported.
    """
    name = metadata.text("general.architecture")
    _refuse_others(metadata, name, more)
    heads = metadata.integer(f"{name}.attention.head_count", most=MOST_HEADS)
    groups = metadata.integer(f"{name}.attention.head_count_kv", heads, most=MOST_HEADS)
    hidden = metadata.integer(f"{name}.embedding_length")
    if heads % groups:
        fault = f"{groups} does not divide the {heads} heads of attention.head_count"
        raise metadata.wrong(f"{name}.attention.head_count_kv", fault)
    if hidden % heads:
        fault = f"{heads} does not divide embedding_length = {hidden}"
        raise metadata.wrong(f"{name}.attention.head_count", fault)
    return Dimensions(
        layers=metadata.integer(f"{name}.block_count", most=MOST_LAYERS),
        hidden=hidden,
        intermediate=metadata.integer(f"{name}.feed_forward_length"),
        heads=heads,
        groups=groups,
        head=_head(metadata, name, hidden // heads),
        vocabulary=_vocabulary(metadata, name),
        context=metadata.integer(f"{name}.context_length"),
        epsilon=metadata.real(f"{name}.attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in tensors,
    )


def base_config(sizes: Dimensions) -> dict[str, Any]:
    """Returns the settings of config.json that every architecture has."""
    return {
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.groups,
        "head_dim": sizes.head,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.context,
        "rms_norm_eps": sizes.epsilon,
        "tie_word_embeddings": sizes.tied,
    }


def rope_parameters(metadata: Metadata) -> dict[str, Any]:
    """Returns the rotary settings of transformers: base, and linear scaling of positions if any.

    Raises:
        ModelError: the file states another kind of scaling.
    """
    name = metadata.text("general.architecture")
    settings: dict[str, Any] = {"rope_type": "default"}
    kind = metadata.text(f"{name}.rope.scaling.type", "linear")
    if kind not in ("none", "linear"):
        fault = f"{kind[:100]!r} is not supported; supported are none and linear"
        raise metadata.wrong(f"{name}.rope.scaling.type", fault, "give a model without it")
    old_key = f"{name}.rope.scale_linear"
    factor = metadata.real(f"{name}.rope.scaling.factor", metadata.real(old_key, 1.0))
    if kind == "linear" and factor != 1.0:
        settings = {"rope_type": "linear", "factor": factor}
    return {**settings, "rope_theta": metadata.real(f"{name}.rope.freq_base", 10_000.0)}


def refuse_sliding_window(metadata: Metadata, sizes: Dimensions) -> None:
    """Raises `ModelError` if a window shorter than the context is stated, for an architecture that
    is supported without."""
    key = f"{metadata.text('general.architecture')}.attention.sliding_window"
    window = metadata.integer(key, 0, least=0)
    if 0 < window < sizes.context:
        fault = f"{window} is shorter than the context of {sizes.context} tokens: not supported"
        raise metadata.wrong(key, fault, "give a model without it")


def _head(metadata: Metadata, name: str, default: int) -> int:
    keys = metadata.integer(f"{name}.attention.key_length", default)
    for entry in ("attention.value_length", "rope.dimension_count"):
        value = metadata.integer(f"{name}.{entry}", keys)
        if value != keys:
            fault = f"{value} differs from the {keys} numbers of a head: not supported"
            raise metadata.wrong(f"{name}.{entry}", fault, "give a model without it")
    if keys % 2:
        fault = f"{keys} numbers of a head cannot be rotated in pairs"
        raise metadata.wrong(f"{name}.attention.key_length", fault)
    return keys


def _vocabulary(metadata: Metadata, name: str) -> int:
    tokens = len(metadata.texts("tokenizer.ggml.tokens"))
    stated = metadata.integer(f"{name}.vocab_size", tokens)
    if stated != tokens:
        fault = f"{stated:,}, but tokenizer.ggml.tokens has {tokens:,}"
        raise metadata.wrong(f"{name}.vocab_size", fault)
    return tokens


def _refuse_others(metadata: Metadata, name: str, more: tuple[str, ...]) -> None:
    accepted = {f"{name}.{entry}" for entry in (*_READ, *more)}
    for key in metadata.values:
        if key.startswith(f"{name}.") and key not in accepted:
            raise metadata.wrong(key, "is not supported", "give a model without it")
    if metadata.integer(f"{name}.expert_count", 0, least=0):
        fault = "a mixture of experts is not supported"
        raise metadata.wrong(f"{name}.expert_count", fault, "give a dense model")
    if not metadata.flag(f"{name}.attention.causal", True):
        fault = "attention to later tokens is not supported"
        raise metadata.wrong(f"{name}.attention.causal", fault, "give a causal model")
