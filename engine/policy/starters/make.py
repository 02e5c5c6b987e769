"""Training of the starters: tokenizer and supervised warm start, from a seed.

Invariant: everything depends on the seed; on one machine and one thread the same seed gives
the same weights to the bit.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from engine.policy.batching import length_buckets, right_pad
from engine.policy.models.conversations import conversation_ids
from engine.policy.starters.demonstrations import (
    CLEAN,
    Demonstration,
    NoiseLevels,
    Repairs,
    demonstrations,
    mixed_demonstrations,
)
from engine.policy.starters.vocabulary import train_tokenizer
from engine.preload.allocator import keep_freed_memory
from engine.problems.generator import VERSION

TOKENIZER_TEXTS = 3000
NOISY_START = 10_000_000  # a problem that the clean phase never reaches
POOL_ROWS = 512
MAX_TOKENS = 200
IGNORED = -100
NOTED_STEPS = 20
"""Interval in steps at which the lineage records the loss, so that a reproduction shows early
whether it matches."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps of AdamW over one cycle of the learning rate, which ends near zero."""

    steps: int
    batch_tokens: int
    """Most padded tokens of a batch."""
    learning_rate: float
    """Peak of the cycle."""


@dataclass(frozen=True, slots=True)
class StarterRecipe:
    """Shape, data and schedule of one starter: a clean phase, then a noisy one.

    The noisy phase is short and its steps small, so that correct answers stay the likeliest.
    """

    name: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    noise: NoiseLevels
    clean: Phase
    noisy: Phase

    def demonstrations(
        self, seed: int, noise: NoiseLevels, start: int = 0
    ) -> Iterator[Demonstration]:
        """Yields the demonstrations of a phase."""
        return demonstrations(seed, noise, start)


@dataclass(frozen=True, slots=True)
class MixedStarterRecipe(StarterRecipe):
    """Recipe of a starter that also sees underspecified problems."""

    underspecified_share: float
    repairs: Repairs

    def demonstrations(
        self, seed: int, noise: NoiseLevels, start: int = 0
    ) -> Iterator[Demonstration]:
        return mixed_demonstrations(seed, noise, self.underspecified_share, self.repairs, start)


CLEAN_PHASE = Phase(steps=2000, batch_tokens=1300, learning_rate=6e-3)
MIXED_CLEAN_PHASE = Phase(steps=6000, batch_tokens=1600, learning_rate=6e-3)
RIGHT_REPAIRS = Repairs(stated=0.4, underspecified=0.6)
NOISY_PHASE = Phase(steps=200, batch_tokens=2600, learning_rate=1e-3)
RECIPES = (
    StarterRecipe(
        "oak", 1024, 128, 2, 4, 320, NoiseLevels(0.35, 0.5, 0.5), CLEAN_PHASE, NOISY_PHASE
    ),
    StarterRecipe(
        "fern", 896, 112, 3, 4, 224, NoiseLevels(0.5, 0.38, 0.38),
        replace(CLEAN_PHASE, learning_rate=7e-3), NOISY_PHASE,
    ),
    MixedStarterRecipe(
        "ash", 1280, 128, 2, 4, 320, NoiseLevels(0.35, 0.5, 0.5), MIXED_CLEAN_PHASE, NOISY_PHASE,
        underspecified_share=0.5, repairs=RIGHT_REPAIRS,
    ),
    MixedStarterRecipe(
        "rowan", 1152, 112, 3, 4, 224, NoiseLevels(0.5, 0.38, 0.38),
        replace(MIXED_CLEAN_PHASE, learning_rate=7e-3), NOISY_PHASE,
        underspecified_share=0.5, repairs=RIGHT_REPAIRS,
    ),
)  # fmt: skip

Progress = Callable[[str, int, int, float], None]


def make_starters(seed: int, out: Path, progress: Progress | None = None) -> list[Path]:
    """Makes the starters concurrently, one process and one thread each."""
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
    """Warm-starts one policy and saves it in Hugging Face layout under `out`."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    clean = recipe.demonstrations(seed, CLEAN)
    first = list(islice(clean, TOKENIZER_TEXTS))
    tokenizer = train_tokenizer((_text(d) for d in first), recipe.vocabulary)
    model = _new_model(recipe, tokenizer)
    losses = {}
    phases = (
        (recipe.clean, chain(first, clean)),
        (recipe.noisy, recipe.demonstrations(seed, recipe.noise, NOISY_START)),
    )
    for step, steps, loss in _warm_start(model, tokenizer, phases):
        losses[step] = round(loss, 5)
        if progress:
            progress(recipe.name, step, steps, loss)
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
        "losses": losses,
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


def _warm_start(
    model, tokenizer, phases: Sequence[tuple[Phase, Iterator[Demonstration]]]
) -> Iterator[tuple[int, int, float]]:
    """Trains; yields (step, steps, running average of the loss) every `NOTED_STEPS` steps."""
    total = sum(phase.steps for phase, _ in phases)
    done = 0
    for phase, stream in phases:
        for step, loss in enumerate(train_phase(model, tokenizer, phase, stream), done + 1):
            if step % NOTED_STEPS == 0 or step == total:
                yield step, total, loss
        done += phase.steps


def train_phase(model, tokenizer, phase: Phase, stream: Iterator[Demonstration]) -> Iterator[float]:
    """Trains for one phase; yields the running average of the loss after every step."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=phase.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, phase.learning_rate, phase.steps, pct_start=0.1
    )
    average = None
    for ids_NL, labels_NL in islice(batches_of(tokenizer, stream, phase.batch_tokens), phase.steps):
        mask_NL = (ids_NL != tokenizer.pad_token_id).long()
        loss = model(input_ids=ids_NL, attention_mask=mask_NL, labels=labels_NL).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        yield average


def batches_of(
    tokenizer, stream: Iterator[Demonstration], tokens: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields batches of rows of similar length, which need little padding, in random order."""
    while True:
        rows = [encode(tokenizer, demonstration) for demonstration in islice(stream, POOL_ROWS)]
        pool = [(p, a) for p, a in rows if len(p) + len(a) <= MAX_TOKENS]
        groups = length_buckets([len(p) + len(a) for p, a in pool], tokens)
        for position in torch.randperm(len(groups)).tolist():
            yield pad([pool[row] for row in groups[position]], tokenizer.pad_token_id)


def encode(tokenizer, row: Demonstration) -> tuple[list[int], list[int]]:
    prompt = conversation_ids(tokenizer, row.messages, add_generation_prompt=True)
    return prompt, [*tokenizer.encode(row.answer, add_special_tokens=False), tokenizer.eos_token_id]


def pad(rows: list[tuple[list[int], list[int]]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (ids_NL, labels_NL), right-padded; labels cover the answers only."""
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = [prompt + answer for prompt, answer in rows]
    labels = [[IGNORED] * len(prompt) + answer for prompt, answer in rows]
    return (
        right_pad(ids, width, pad_id, torch.long, "cpu"),
        right_pad(labels, width, IGNORED, torch.long, "cpu"),
    )
