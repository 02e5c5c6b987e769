"""Tiny GGUF files of models of transformers, written as llama.cpp's converter writes them.

The rules of that converter (names, order of rotary rows, norms plus one) are written out here in
its direction, from a model of transformers to a file; the code under test goes the other way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
KINDS = ("F32", "F16", "BF16", *QUANTISED)
HIDDEN = 256
_SIZES = {
    "hidden_size": HIDDEN, "intermediate_size": HIDDEN, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
_CLASSES = {
    "llama": (LlamaConfig, LlamaForCausalLM, gguf.MODEL_ARCH.LLAMA),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, gguf.MODEL_ARCH.QWEN2),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, gguf.MODEL_ARCH.QWEN3),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM, gguf.MODEL_ARCH.GEMMA3),
}
_OWN = {
    "gemma3": {
        "num_hidden_layers": 7, "sliding_window": 4, "query_pre_attn_scalar": 64,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    },
}  # fmt: skip


@dataclass
class Content:
    """Everything of a file, to be changed by a test before it is written."""

    architecture: str
    values: dict[str, Any]
    """Metadata: a value, or (value, type) where its Python type does not determine it."""
    tensors: dict[str, tuple[np.ndarray, Kind]] = field(default_factory=dict)
    """Numbers, or rows of blocks as bytes, by name."""

    def write(self, path: Path) -> Path:
        writer = gguf.GGUFWriter(path, self.architecture)
        for key, value in self.values.items():
            _add(writer, key, value)
        for name, (data, kind) in self.tensors.items():
            writer.add_tensor(name, data, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    kinds = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING", list: "ARRAY"}
    if isinstance(value, tuple):
        value, kind = value
        writer.add_key_value(key, value, getattr(gguf.GGUFValueType, kind))
    else:
        kind = getattr(gguf.GGUFValueType, kinds[type(value)])
        writer.add_key_value(key, value, kind)


def tiny_model(architecture: str, vocabulary: int, seed: int = 0, **options: Any) -> Any:
    """Returns a model of random weights, norms and biases included."""
    config_class, model_class, _ = _CLASSES[architecture]
    settings = {**_SIZES, "vocab_size": vocabulary, **_OWN.get(architecture, {}), **options}
    torch.manual_seed(seed)
    model = model_class(config_class(**settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.3 if parameter.dim() == 1 else 0.08)
    return model


def content_of(model: Any, architecture: str, kind: str, vocabulary: dict[str, Any]) -> Content:
    """Returns the file of a model with its matrices as `kind`. The matrices of `model` become what
    the file holds, as F32: quantised and dequantised."""
    arch = _CLASSES[architecture][2]
    names = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    content = Content(architecture, {**_hyperparameters(model, architecture), **vocabulary})
    random = np.random.default_rng(1)
    for name, parameter in model.named_parameters():
        target = names.get_name(name, try_suffixes=(".weight", ".bias"))
        data = parameter.detach().numpy()
        if data.ndim == 1:
            content.tensors[target] = (_stored(name, data, architecture, model), Kind.F32)
            continue
        rows = quantised(data, Kind[kind], random)
        held = gguf.quants.dequantize(rows, Kind[kind])
        parameter.data = torch.from_numpy(np.array(held, np.float32))
        content.tensors[target] = (_stored(name, rows, architecture, model), Kind[kind])
    return content


def quantised(data: np.ndarray, kind: Kind, random: np.random.Generator) -> np.ndarray:
    """Returns rows of blocks. The types that gguf cannot quantise become random blocks."""
    try:
        return gguf.quants.quantize(data, kind)
    except NotImplementedError:
        return random_blocks(data.shape, kind, random)


def random_blocks(shape: tuple[int, ...], kind: Kind, random: np.random.Generator) -> np.ndarray:
    """Returns rows of K blocks of random bits whose values are around 0.1."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (*shape[:-1], shape[-1] // numbers, size), np.uint8)
    scales = random.uniform(0.5, 1.0, blocks.shape[:-1]).astype(np.float16)
    if kind is Kind.Q6_K:  # its scale is at the end
        blocks[..., 208:210] = (scales * np.float16(1e-4))[..., None].view(np.uint8)
    else:  # the minimum is about the mean of what it is subtracted from
        middle = 7.5 if kind is Kind.Q4_K else 15.5
        blocks[..., 0:2] = (scales * np.float16(4e-3 / middle))[..., None].view(np.uint8)
        blocks[..., 2:4] = (scales * np.float16(4e-3))[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def _stored(name: str, rows: np.ndarray, architecture: str, model: Any) -> np.ndarray:
    """Returns rows as llama.cpp's converter orders them, and its norms."""
    if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
        config = model.config
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        pairs = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
        return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows.shape))
    if architecture == "gemma3" and name.endswith("norm.weight"):
        return rows + np.float32(1)
    return np.array(rows)


def _hyperparameters(model: Any, architecture: str) -> dict[str, Any]:
    config = model.config
    values = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.key_length": config.head_dim
        if hasattr(config, "head_dim")
        else config.hidden_size // config.num_attention_heads,
    }
    rope = config.rope_parameters
    if architecture == "gemma3":
        rope = rope["full_attention"]
        values["attention.sliding_window"] = config.sliding_window
    values["rope.freq_base"] = float(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        values |= {"rope.scaling.type": "linear", "rope.scaling.factor": rope["factor"]}
    return {f"{architecture}.{key}": value for key, value in values.items()}
