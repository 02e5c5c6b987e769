"""Makes the starters: tokenizer and supervised warm start, from a seed.

Invariant: everything is drawn from the seed; on one machine and one thread the same seed gives
the same weights to the bit.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from engine.policy.allocator import keep_freed_memory
from engine.policy.batching import length_buckets, right_pad
from engine.policy.starters.demonstrations import (
    CLEAN,
    Demonstration,
    NoiseLevels,
    demonstrations,
)
from engine.policy.starters.vocabulary import train_tokenizer
from engine.problems.generator import VERSION

TOKENIZER_TEXTS = 3000
CLEAN_TOKENS, NOISY_TOKENS = 1300, 4000
"""Of a batch: doubt is a matter of frequencies, which many rows at once show better."""
NOISY_START = 10_000_000  # a problem that the clean steps never reach
POOL_ROWS = 512
MAX_TOKENS = 200
IGNORED = -100


@dataclass(frozen=True, slots=True)
class StarterRecipe:
    """Shape, data and schedule of one starter."""

    name: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    clean_steps: int
    """On demonstrations without noise, by a one-cycle schedule: knowledge before doubt."""
    clean_rate: float
    """Highest learning rate of the clean steps."""
    noise: NoiseLevels
    noisy_steps: int
    noisy_rate: float
    """Learning rate of the noisy steps, constant: small, so that knowledge stays under the doubt."""


RECIPES = (
    StarterRecipe(
        "oak", 1024, 128, 2, 4, 320, 1700, 6e-3, NoiseLevels(0.5, 0.65, 0.65), 200, 1e-3
    ),
    StarterRecipe(
        "fern", 896, 112, 3, 4, 224, 1700, 7e-3, NoiseLevels(0.65, 0.5, 0.5), 200, 1e-3
    ),
)

Progress = Callable[[str, int, int, float], None]


def make_starters(seed: int, out: Path, progress: Progress | None = None) -> list[Path]:
    """Make both starters side by side, one process and one thread each."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    jobs = [
        context.Process(target=_make_in_process, args=(recipe, seed, out / recipe.name, queue))
        for recipe in RECIPES
    ]
    for job in jobs:
        job.start()
    while any(job.is_alive() for job in jobs) or not queue.empty():
        _drain(queue, progress)
    for job, recipe in zip(jobs, RECIPES, strict=True):
        job.join()
        if job.exitcode:
            raise RuntimeError(
                f"starter {recipe.name} was not made: its process ended with {job.exitcode}"
            )
    return [out / recipe.name for recipe in RECIPES]


def make_starter(
    recipe: StarterRecipe, seed: int, out: Path, progress: Progress | None = None
) -> Path:
    """Warm-start one policy and save it in Hugging Face layout under `out`."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    clean = demonstrations(seed, CLEAN)
    first = list(islice(clean, TOKENIZER_TEXTS))
    tokenizer = train_tokenizer((_text(d) for d in first), recipe.vocabulary)
    model = _new_model(recipe, tokenizer)
    _warm_start(model, tokenizer, recipe, seed, progress)
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    weights = (out / "model.safetensors").read_bytes()
    lineage = {
        "name": recipe.name,
        "seed": seed,
        "generator_version": VERSION,
        "recipe": asdict(recipe),
        "sha256": hashlib.sha256(weights).hexdigest(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    (out / "lineage.json").write_text(json.dumps(lineage, indent=1) + "\n")
    return out


def _make_in_process(recipe: StarterRecipe, seed: int, out: Path, queue) -> None:
    keep_freed_memory()
    make_starter(recipe, seed, out, lambda *report: queue.put(report))


def _drain(queue, progress: Progress | None) -> None:
    from queue import Empty

    try:
        report = queue.get(timeout=0.2)
    except Empty:
        return
    if progress:
        progress(*report)


def _text(demonstration: Demonstration) -> str:
    return demonstration.messages[0]["content"] + "\n" + demonstration.answer


def _new_model(recipe: StarterRecipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        intermediate_size=recipe.feed_forward,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    return LlamaForCausalLM(config)


def _warm_start(model, tokenizer, recipe: StarterRecipe, seed: int, progress: Progress | None):
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.clean_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.clean_rate, recipe.clean_steps, pct_start=0.1
    )
    clean = _batches(tokenizer, demonstrations(seed, CLEAN), CLEAN_TOKENS)
    noisy = _batches(tokenizer, demonstrations(seed, recipe.noise, NOISY_START), NOISY_TOKENS)
    steps = recipe.clean_steps + recipe.noisy_steps
    average = None
    for step in range(1, steps + 1):
        is_clean = step <= recipe.clean_steps
        ids_NL, labels_NL = next(clean if is_clean else noisy)
        mask_NL = (ids_NL != tokenizer.pad_token_id).long()
        loss = model(input_ids=ids_NL, attention_mask=mask_NL, labels=labels_NL).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if is_clean:
            schedule.step()
        if step == recipe.clean_steps:
            optimizer.param_groups[0]["lr"] = recipe.noisy_rate
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if progress and (step % 20 == 0 or step == steps):
            progress(recipe.name, step, steps, average)


def _batches(
    tokenizer, stream: Iterator[Demonstration], tokens: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of rows of like length, so that little is spent on padding; their order is drawn."""
    while True:
        rows = [_encode(tokenizer, demonstration) for demonstration in islice(stream, POOL_ROWS)]
        pool = [(p, a) for p, a in rows if len(p) + len(a) <= MAX_TOKENS]
        groups = length_buckets([len(p) + len(a) for p, a in pool], tokens)
        for position in torch.randperm(len(groups)).tolist():
            yield _pad([pool[row] for row in groups[position]], tokenizer.pad_token_id)


def _encode(tokenizer, row: Demonstration) -> tuple[list[int], list[int]]:
    prompt = tokenizer.apply_chat_template(
        row.messages, add_generation_prompt=True, return_dict=False
    )
    return prompt, [*tokenizer.encode(row.answer, add_special_tokens=False), tokenizer.eos_token_id]


def _pad(rows: list[tuple[list[int], list[int]]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids_NL, labels_NL), right-padded; the loss counts the answers only."""
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = [prompt + answer for prompt, answer in rows]
    labels = [[IGNORED] * len(prompt) + answer for prompt, answer in rows]
    return (
        right_pad(ids, width, pad_id, torch.long, "cpu"),
        right_pad(labels, width, IGNORED, torch.long, "cpu"),
    )
