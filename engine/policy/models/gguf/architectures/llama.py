"""Llama and what llama.cpp stores as such (SmolLM, Mistral without a sliding window, ...).

llama.cpp rotates neighbouring numbers of a head, transformers the two halves of it; its converter
reorders the rows of queries and keys accordingly, which is undone here (`Expected.rotary_head`).
"""

from __future__ import annotations

from typing import Any

from engine.policy.models.gguf.architectures.decoder import (
    PRE_NORMS,
    attention,
    attention_biases,
    feed_forward,
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
from engine.policy.models.gguf.architectures.llama3_rope import llama3_parameters
from engine.policy.models.gguf.architectures.plan import Expected, Plan, sources
from engine.policy.models.gguf.errors import CONVERT_AGAIN, refusal
from engine.policy.models.gguf.file import GgufFile

_DIVISORS = "rope_freqs.weight"


def plan(file: GgufFile) -> Plan:
    """Returns a `LlamaForCausalLM`."""
    metadata = file.metadata
    sizes = read_dimensions(metadata, file.tensors)
    refuse_sliding_window(metadata, sizes)
    attention_bias = "blk.0.attn_q.bias" in file.tensors
    mlp_bias = "blk.0.ffn_up.bias" in file.tensors
    expected = outer(sizes)
    for layer in range(sizes.layers):
        expected |= norms(sizes, layer, PRE_NORMS)
        expected |= attention(sizes, layer, interleaved=True)
        expected |= feed_forward(sizes, layer)
        if attention_bias:
            expected |= _attention_biases(sizes, layer)
        if mlp_bias:
            expected |= _mlp_biases(sizes, layer)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **base_config(sizes),
        "hidden_act": "silu",
        "attention_bias": attention_bias,
        "mlp_bias": mlp_bias,
        "rope_parameters": _rope(file, sizes),
    }
    return Plan(config, sources(metadata, file.tensors, expected, frozenset({_DIVISORS})))


def _rope(file: GgufFile, sizes: Dimensions) -> dict[str, Any]:
    settings = rope_parameters(file.metadata)
    if _DIVISORS not in file.tensors:
        return settings
    what, shape = f"tensor {_DIVISORS}", file.tensors[_DIVISORS].shape
    if shape != (sizes.head // 2,):
        fault = f"is of shape {shape}, by the metadata it is ({sizes.head // 2},)"
        raise refusal(file.path, what, fault, CONVERT_AGAIN)
    known = llama3_parameters(file.values(_DIVISORS)[0], settings["rope_theta"])
    if known is None or settings["rope_type"] != "default":
        fault = "holds no divisors of Llama 3's rotary scaling; no other is supported"
        raise refusal(file.path, what, fault, "give a model without it")
    return known


def _attention_biases(sizes: Dimensions, layer: int) -> dict[str, Expected]:
    target = f"model.layers.{layer}.self_attn.o_proj.bias"
    return {
        **attention_biases(sizes, layer, interleaved=True),
        f"blk.{layer}.attn_output.bias": Expected(target, (sizes.hidden,)),
    }


def _mlp_biases(sizes: Dimensions, layer: int) -> dict[str, Expected]:
    block, target = f"blk.{layer}", f"model.layers.{layer}.mlp"
    return {
        f"{block}.ffn_gate.bias": Expected(f"{target}.gate_proj.bias", (sizes.intermediate,)),
        f"{block}.ffn_up.bias": Expected(f"{target}.up_proj.bias", (sizes.intermediate,)),
        f"{block}.ffn_down.bias": Expected(f"{target}.down_proj.bias", (sizes.hidden,)),
    }
