"""Qwen2, Qwen2.5 and Qwen3: Llama's shape, with biases of queries, keys and values (2), or with
norms of each head's queries and keys (3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.policy.models.gguf.architectures.decoder import (
    PRE_NORMS,
    attention,
    attention_biases,
    feed_forward,
    head_norms,
    norms,
    outer,
)
from engine.policy.models.gguf.architectures.dimensions import (
    Dimensions,
    base_config,
    read_dimensions,
    refuse_sliding_window,
    rope_parameters,
)
from engine.policy.models.gguf.architectures.plan import Expected, Plan, sources
from engine.policy.models.gguf.file import GgufFile


def plan_qwen2(file: GgufFile) -> Plan:
    """Returns a `Qwen2ForCausalLM`."""
    return _plan(file, "Qwen2ForCausalLM", {"model_type": "qwen2"}, attention_biases)


def plan_qwen3(file: GgufFile) -> Plan:
    """Returns a `Qwen3ForCausalLM`."""
    settings = {"model_type": "qwen3", "attention_bias": False}
    return _plan(file, "Qwen3ForCausalLM", settings, head_norms)


def _plan(
    file: GgufFile,
    name: str,
    settings: dict[str, Any],
    more: Callable[[Dimensions, int], dict[str, Expected]],
) -> Plan:
    """Returns the model of class `name`; `more` are the tensors that a layer has beyond Llama's."""
    metadata = file.metadata
    sizes = read_dimensions(metadata, file.tensors)
    refuse_sliding_window(metadata, sizes)
    expected = outer(sizes)
    for layer in range(sizes.layers):
        expected |= norms(sizes, layer, PRE_NORMS)
        expected |= attention(sizes, layer) | more(sizes, layer)
        expected |= feed_forward(sizes, layer)
    config = {
        "architectures": [name],
        **settings,
        **base_config(sizes),
        "hidden_act": "silu",
        "use_sliding_window": False,
        "rope_parameters": rope_parameters(metadata),
    }
    return Plan(config, sources(metadata, file.tensors, expected))
