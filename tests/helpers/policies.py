"""Small real policies in Hugging Face layout, created in a moment; untrained unless stated."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from engine.config.schema import RunConfig, parse_config
from engine.policy.starters import starter_directory
from engine.policy.starters.demonstrations import CLEAN, demonstrations
from engine.policy.starters.vocabulary import train_tokenizer


def tiny_policy(directory: Path, seed: int = 0, vocabulary: int = 400) -> Path:
    """A directory that `load_policy` accepts: 2 layers of width 32."""
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


def renumbered_starter(name: str, directory: Path, seed: int = 0) -> Path:
    """A starter that writes the same text as the shipped one with differently numbered tokens: to
    either of the two, the other's token ids are noise."""
    source = starter_directory(name)
    model = AutoModelForCausalLM.from_pretrained(source)
    assert model.config.tie_word_embeddings
    size = model.config.vocab_size
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    weights_VH = model.get_input_embeddings().weight.data
    weights_VH[order] = weights_VH.clone()
    new = order.tolist()
    for settings in (model.config, model.generation_config):
        for field in ("eos_token_id", "pad_token_id"):
            setattr(settings, field, new[getattr(settings, field)])
    model.save_pretrained(directory)
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {token: new[number] for token, number in vocabulary.items()}
    for token in tokenizer["added_tokens"]:
        token["id"] = new[token["id"]]
    tokenizer["added_tokens"].sort(key=lambda token: token["id"])
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    for file in ("tokenizer_config.json", "chat_template.jinja"):
        (directory / file).write_bytes((source / file).read_bytes())
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
