"""Tensors that all supported architectures have in common."""

from __future__ import annotations

from engine.policy.models.gguf.architectures.dimensions import Dimensions
from engine.policy.models.gguf.architectures.plan import Expected


def outer(sizes: Dimensions, norm_offset: float = 0.0) -> dict[str, Expected]:
    """Returns embedding, last norm and output layer, by their names in the file."""
    matrix = (sizes.vocabulary, sizes.hidden)
    tensors = {
        "token_embd.weight": Expected("model.embed_tokens.weight", matrix),
        "output_norm.weight": Expected("model.norm.weight", (sizes.hidden,), offset=norm_offset),
    }
    if not sizes.tied:
        tensors["output.weight"] = Expected("lm_head.weight", matrix)
    return tensors


def attention(sizes: Dimensions, layer: int, *, interleaved: bool = False) -> dict[str, Expected]:
    """Returns the four matrices of a layer's attention; `interleaved` as the file stores the rotary
    pairs of Llama."""
    queries, keys = sizes.heads * sizes.head, sizes.groups * sizes.head
    rotary = sizes.head if interleaved else 0
    block, target = f"blk.{layer}", f"model.layers.{layer}.self_attn"
    return {
        f"{block}.attn_q.weight": Expected(
            f"{target}.q_proj.weight", (queries, sizes.hidden), rotary
        ),
        f"{block}.attn_k.weight": Expected(f"{target}.k_proj.weight", (keys, sizes.hidden), rotary),
        f"{block}.attn_v.weight": Expected(f"{target}.v_proj.weight", (keys, sizes.hidden)),
        f"{block}.attn_output.weight": Expected(f"{target}.o_proj.weight", (sizes.hidden, queries)),
    }


def attention_biases(
    sizes: Dimensions, layer: int, *, interleaved: bool = False
) -> dict[str, Expected]:
    """Returns the biases of queries, keys and values."""
    queries, keys = sizes.heads * sizes.head, sizes.groups * sizes.head
    rotary = sizes.head if interleaved else 0
    block, target = f"blk.{layer}", f"model.layers.{layer}.self_attn"
    return {
        f"{block}.attn_q.bias": Expected(f"{target}.q_proj.bias", (queries,), rotary),
        f"{block}.attn_k.bias": Expected(f"{target}.k_proj.bias", (keys,), rotary),
        f"{block}.attn_v.bias": Expected(f"{target}.v_proj.bias", (keys,)),
    }


def head_norms(sizes: Dimensions, layer: int, offset: float = 0.0) -> dict[str, Expected]:
    """Returns the norms of a head's queries and keys."""
    block, target, shape = f"blk.{layer}", f"model.layers.{layer}.self_attn", (sizes.head,)
    return {
        f"{block}.attn_q_norm.weight": Expected(f"{target}.q_norm.weight", shape, offset=offset),
        f"{block}.attn_k_norm.weight": Expected(f"{target}.k_norm.weight", shape, offset=offset),
    }


def feed_forward(sizes: Dimensions, layer: int) -> dict[str, Expected]:
    """Returns the three matrices of a gated feed-forward part."""
    block, target = f"blk.{layer}", f"model.layers.{layer}.mlp"
    wide, narrow = (sizes.intermediate, sizes.hidden), (sizes.hidden, sizes.intermediate)
    return {
        f"{block}.ffn_gate.weight": Expected(f"{target}.gate_proj.weight", wide),
        f"{block}.ffn_up.weight": Expected(f"{target}.up_proj.weight", wide),
        f"{block}.ffn_down.weight": Expected(f"{target}.down_proj.weight", narrow),
    }


def norms(
    sizes: Dimensions, layer: int, names: dict[str, str], offset: float = 0.0
) -> dict[str, Expected]:
    """Returns norms of a layer; `names` maps those of the file to those of Hugging Face."""
    return {
        f"blk.{layer}.{name}.weight": Expected(
            f"model.layers.{layer}.{target}.weight", (sizes.hidden,), offset=offset
        )
        for name, target in names.items()
    }


PRE_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
"""Norms of an architecture that has one before attention and one before the feed-forward part."""
