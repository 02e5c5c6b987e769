"""A starter with more layers, initialised as the identity: the same answers at the cost of a larger
model.

Invariant: a new layer adds 0 to the residual stream until it is trained.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from engine.policy.models.tokenizer import load_tokenizer
from engine.policy.starters import starter_directory


def deeper(starter: str, layers: int, directory: Path) -> Path:
    """Saves such a model with `layers` layers, and its tokenizer; returns its directory.

    Raises:
        ValueError: the starter has more layers.
    """
    source = starter_directory(starter)
    model = AutoModelForCausalLM.from_pretrained(source)
    config = model.config
    if layers < config.num_hidden_layers:
        raise ValueError(
            f"layers = {layers}: the starter {starter} has {config.num_hidden_layers}; give "
            "that number or more"
        )
    config.num_hidden_layers = layers
    torch.manual_seed(0)
    grown = AutoModelForCausalLM.from_config(config)
    _, unknown = grown.load_state_dict(model.state_dict(), strict=False)
    assert not unknown
    for layer in grown.model.layers[len(model.model.layers) :]:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    grown.save_pretrained(directory)
    load_tokenizer(source).save_pretrained(directory)
    return directory
