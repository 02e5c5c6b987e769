"""Small real policies in Hugging Face layout, made in a moment; untrained unless said."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.config import RunConfig, parse_config
from engine.policy.starters.demonstrations import CLEAN, demonstrations
from engine.policy.starters.vocabulary import train_tokenizer


def tiny_policy(directory: Path, seed: int = 0, vocabulary: int = 400) -> Path:
    """A directory that `load_policy` takes: 2 layers of width 32."""
    rows = islice(demonstrations(seed, CLEAN), 200)
    tokenizer = train_tokenizer((r.messages[0]["content"] + r.answer for r in rows), vocabulary)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def tiny_config(*models: Path, **settings) -> RunConfig:
    """Settings of a run of a few seconds with these models; `settings` replace whole sections."""
    sampling = {"max_prompt_tokens": 200, "max_new_tokens": 8}
    agents = [
        {
            "name": f"agent-{number}",
            "model": str(model),
            "sampling": sampling,
            "optimizer": {"learning_rate": 1e-3, "schedule": "constant", "warmup_fraction": 0.0},
        }
        for number, model in enumerate(models)
    ]
    sections = {
        "agents": agents,
        "problems": {"seed": 3, "train": 100, "validation": 4, "test": 6},
        "search": {"nodes_per_tree": 4, "nodes_in_flight": 2},
        "training": {"steps": 3, "trees_per_step": 4, "validate_every": 2, "checkpoint_every": 1},
        "evaluation": {"tree_nodes": 4},
        "credit": {"dynamic_filter": False},
    }
    return parse_config(sections | settings)
