"""Shape of a model: its number of weights, and the memory per token of its cache and activations.

Read from the `config.json` of a directory, or known by Hugging Face id before it is downloaded.
Only Llama-style decoders are supported (grouped attention, a gated feed-forward part); no other
model gets an estimate.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config.pretrained import PACKAGE_PREFIX, installed_directory, pretrained_model
from engine.config.schema import STARTERS
from engine.hub.download import cached_model
from engine.hub.reference import is_hub

LOGITS_AT_ONCE = 2**26
"""Maximum number of logits that a learner holds at a time
(`engine.policy.models.chunked_logits`); 256 MiB in float32.
"""
CPU_LOGITS_AT_ONCE = 2**22
"""The same on a CPU, whose caches hold them; 16 MiB in float32."""
LARGE_VOCABULARY = 8192
"""Vocabulary from which the lower maximum applies: with fewer tokens the logits of a micro-batch
are small."""


def logits_at_once(vocabulary: int, *, on_cpu: bool) -> int:
    """Returns the maximum number of logits that a learner holds at a time."""
    return CPU_LOGITS_AT_ONCE if on_cpu and vocabulary >= LARGE_VOCABULARY else LOGITS_AT_ONCE


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    tied: bool
    """Whether the embedding is also the output matrix."""
    head_norms: bool = False
    """Whether queries and keys are normalized per head, as in Qwen3."""

    @property
    def parameters(self) -> int:
        return self.embeddings + self.layers * self.layer

    @property
    def embeddings(self) -> int:
        """Weights of the embedding and of the output matrix."""
        return self.vocabulary * self.width * (1 if self.tied else 2)

    @property
    def layer(self) -> int:
        """Weights of one layer."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.key_value_heads)
        return attention + 3 * self.width * self.feed_forward + 2 * self.width

    @property
    def cached_per_token(self) -> int:
        """Numbers per token in the key-value cache."""
        return 2 * self.layers * self.key_value_heads * self.head_width

    def activation_bytes_per_token(self, size: int) -> int:
        """Returns the bytes per token that one layer keeps for its backward pass, its input
        included, with `size` bytes per number and attention that keeps no score matrix."""
        queries, keys = self.heads * self.head_width, self.key_value_heads * self.head_width
        # Each norm: its input in float32, the normalized input, the result, one root.
        norms = 2 * ((4 + 2 * size) * self.width + 4)
        # Queries, keys, values, attention's output with one number per head, and its packed copy.
        attention = size * (3 * queries + 2 * keys) + 4 * self.heads
        if self.head_norms:
            attention += (4 + size) * (queries + keys) + 4 * (self.heads + self.key_value_heads)
        return norms + attention + 4 * size * self.feed_forward


_QWEN3_8B = Shape(36, 4096, 32, 8, 128, 12288, 151936, False, head_norms=True)
_QWEN3_32B = Shape(64, 5120, 64, 8, 128, 25600, 151936, False, head_norms=True)
_QWEN2_32B = Shape(64, 5120, 40, 8, 128, 27648, 152064, False)
KNOWN_SHAPES = {
    "Qwen/Qwen3-8B": _QWEN3_8B,
    "Qwen/Qwen3-32B": _QWEN3_32B,
    "inclusionAI/AReaL-boba-2-8B": _QWEN3_8B,
    "inclusionAI/AReaL-boba-2-32B": _QWEN3_32B,
    "nvidia/OpenCodeReasoning-Nemotron-32B": _QWEN2_32B,
}
"""Shapes of the models in the papers' settings, from the `config.json` of the Qwen3 of their size;
AReaL-boba-2 was trained from it, Nemotron from Qwen2.5-32B (their model cards)."""


def shape_of(model: str) -> Shape | None:
    """Returns the shape of a directory, a starter, an installed package, a downloaded model of a
    hub or a known id; None if it is unknown."""
    if model in KNOWN_SHAPES:
        return KNOWN_SHAPES[model]
    try:
        folder = model_folder(model)
        return _shape(json.loads((folder / "config.json").read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def model_folder(model: str) -> Path:
    """Returns the directory of a model, which may not exist. Raises ValueError for an unknown
    package."""
    starter = model.removeprefix("starter:")
    if starter != model:
        return STARTERS / starter
    if model.startswith(PACKAGE_PREFIX):
        return installed_directory(pretrained_model(model.removeprefix(PACKAGE_PREFIX)))
    if is_hub(model):
        return cached_model(model) or Path(model)
    return Path(model)


def _shape(config: dict[str, Any]) -> Shape:
    heads = int(config["num_attention_heads"])
    width = int(config["hidden_size"])
    return Shape(
        layers=int(config["num_hidden_layers"]),
        width=width,
        heads=heads,
        key_value_heads=int(config.get("num_key_value_heads") or heads),
        head_width=int(config.get("head_dim") or width // heads),
        feed_forward=int(config["intermediate_size"]),
        vocabulary=int(config["vocab_size"]),
        tied=bool(config.get("tie_word_embeddings", False)),
        head_norms=config.get("model_type") == "qwen3",
    )
