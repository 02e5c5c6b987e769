"""Gemma 3, text part.

llama.cpp stores `1 + weight` of every norm, which is undone here. Its runtime, not the file, has
three values: every sixth layer attends to everything and the others to a window, the rotary base of
windowed layers is 10,000, and scores are scaled by 1/sqrt of a head's numbers, but by that of
embedding_length / head_count in the largest model (62 layers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.policy.models.gguf.architectures.decoder import (
    attention,
    feed_forward,
    head_norms,
    norms,
    outer,
)
from engine.policy.models.gguf.architectures.dimensions import (
    Dimensions,
    base_config,
    read_dimensions,
    rope_parameters,
)
from engine.policy.models.gguf.architectures.plan import Plan, sources
from engine.policy.models.gguf.file import GgufFile
from engine.policy.models.gguf.metadata import Metadata

PATTERN = 6
LOCAL_BASE = 10_000.0
LARGEST_LAYERS = 62

_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_MORE = (
    "attention.sliding_window_pattern", "rope.freq_base_swa", "final_logit_softcapping",
    "attn_logit_softcapping", "rope.dimension_count_swa", "attention.key_length_swa",
    "attention.value_length_swa",
)  # fmt: skip


def plan(file: GgufFile) -> Plan:
    """Returns a `Gemma3ForCausalLM`."""
    metadata = file.metadata
    sizes = read_dimensions(metadata, file.tensors, _MORE)
    for entry in ("rope.dimension_count", "attention.key_length", "attention.value_length"):
        metadata_value = metadata.integer(f"gemma3.{entry}_swa", sizes.head)
        if metadata_value != sizes.head:
            fault = f"{metadata_value} differs from the {sizes.head} numbers of a head"
            raise metadata.wrong(f"gemma3.{entry}_swa", fault, "give a model without it")
    expected = outer(sizes, norm_offset=-1.0)
    for layer in range(sizes.layers):
        expected |= norms(sizes, layer, _NORMS, offset=-1.0)
        expected |= attention(sizes, layer) | head_norms(sizes, layer, offset=-1.0)
        expected |= feed_forward(sizes, layer)
    largest = sizes.layers == LARGEST_LAYERS
    config = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        **base_config(sizes),
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "query_pre_attn_scalar": sizes.hidden // sizes.heads if largest else sizes.head,
        **_windows(metadata, sizes),
        **_soft_caps(metadata),
    }
    return Plan(config, sources(metadata, file.tensors, expected), float16_overflows=True)


def _windows(metadata: Metadata, sizes: Dimensions) -> dict[str, Any]:
    window = metadata.integer("gemma3.attention.sliding_window", 0, least=0)
    full = _full_layers(metadata, sizes) if window else [True] * sizes.layers
    local = metadata.real("gemma3.rope.freq_base_swa", LOCAL_BASE)
    return {
        "layer_types": ["full_attention" if one else "sliding_attention" for one in full],
        "sliding_window": window or sizes.context,
        "rope_parameters": {
            "full_attention": rope_parameters(metadata),
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        },
    }


def _full_layers(metadata: Metadata, sizes: Dimensions) -> list[bool]:
    key = "gemma3.attention.sliding_window_pattern"
    if isinstance(metadata.values.get(key), np.ndarray):
        windowed = metadata.numbers(key, "b")
        if len(windowed) != sizes.layers:
            fault = f"{len(windowed)} values for {sizes.layers} layers"
            raise metadata.wrong(key, fault)
        return [not one for one in windowed.tolist()]
    pattern = metadata.integer(key, PATTERN)
    return [layer % pattern == pattern - 1 for layer in range(sizes.layers)]


def _soft_caps(metadata: Metadata) -> dict[str, float]:
    return {
        name: metadata.real(f"gemma3.{name}")
        for name in ("final_logit_softcapping", "attn_logit_softcapping")
        if f"gemma3.{name}" in metadata
    }
