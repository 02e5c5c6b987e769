"""Qwen3: Llama's shape with norms of each head's queries and keys."""

from __future__ import annotations

from engine.policy.models.gguf.architectures.decoder import (
    PRE_NORMS,
    attention,
    feed_forward,
    head_norms,
    norms,
    outer,
)
from engine.policy.models.gguf.architectures.dimensions import (
    base_config,
    read_dimensions,
    refuse_sliding_window,
    rope_parameters,
)
from engine.policy.models.gguf.architectures.plan import Plan, sources
from engine.policy.models.gguf.file import GgufFile


def plan(file: GgufFile) -> Plan:
    """Returns a `Qwen3ForCausalLM`."""
    metadata = file.metadata
    sizes = read_dimensions(metadata, file.tensors)
    refuse_sliding_window(metadata, sizes)
    expected = outer(sizes)
    for layer in range(sizes.layers):
        expected |= norms(sizes, layer, PRE_NORMS)
        expected |= attention(sizes, layer) | head_norms(sizes, layer)
        expected |= feed_forward(sizes, layer)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **base_config(sizes),
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "rope_parameters": rope_parameters(metadata),
    }
    return Plan(config, sources(metadata, file.tensors, expected))
