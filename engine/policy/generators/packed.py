"""The rows of a running batch in one memory: new ones join, ended ones leave, at any step.

A prompt is run once, however many rows start from it, and only from the end of its longest cached
prefix. Prompts are run separately from the running batch, flush right, and their columns are copied
into it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.policy.batching import prompt_groups
from engine.policy.generators.cache import Layout, RowMemory
from engine.policy.generators.prefix_cache import CachedPrompt, PrefixCache
from engine.policy.generators.siblings import Plan, Siblings, attending

CHUNK = 256
"""Columns by which memory grows, where rows may grow longer."""


@dataclass
class Prompts:
    """Prompts after their forward pass, in the rows of a memory of their own."""

    prompts: list[list[int]]
    memory: Any
    """A `RowMemory`, or the model's own cache."""
    logits_UV: Tensor


class PackedRows:
    """The cache of a batch, for models that cache keys and values per token."""

    joins = True

    def __init__(self, model: PreTrainedModel, layout: Layout, pad_id: int, max_tokens: int):
        self.model, self.layout, self.pad_id, self.max_tokens = model, layout, pad_id, max_tokens
        self.device = model.device
        forward = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in forward
        # A mask in attention's own format saves a conversion at every step.
        self.finished_mask = (
            model.config._attn_implementation == "sdpa"
            and self.takes_positions
            and not any(layout.sliding)
        )
        self.memory = RowMemory(layout, 0, 0, 0, self.device)
        self.cache = self.memory.as_cache()
        self.lengths = np.zeros(0, np.int64)
        """Number of each row's tokens in memory."""
        self.siblings = Siblings(layout, _shares_heads(model))
        self.plan: Plan | None = None
        """The plan of attention, where the model's own attention costs more."""
        self._first_N = torch.zeros(0, dtype=torch.long, device=self.device)

    @property
    def longest(self) -> int:
        """Columns that the batch occupies."""
        return self.memory.end - self.memory.start

    def run(self, prompts: Sequence[list[int]], prefix_cache: PrefixCache) -> list[Prompts]:
        """Runs different prompts, those of similar length together; `join` adds their rows."""
        starts = [prefix_cache.match(prompt) for prompt in prompts]
        lengths = [len(p) - (s[1] if s else 0) for p, s in zip(prompts, starts, strict=True)]
        results = []
        for group in prompt_groups(lengths, self.max_tokens):
            group_prompts = self._run([prompts[g] for g in group], [starts[g] for g in group])
            prefix_cache.insert(group_prompts.memory, group_prompts.prompts)
            results.append(group_prompts)
        return results

    def join(self, prompts: Prompts, index: Sequence[int], tokens_ahead: int) -> None:
        """Adds one row for each index of a prompt; rows may grow by `tokens_ahead` tokens."""
        lengths = np.array([len(prompts.prompts[number]) for number in index])
        longest = int(lengths.max())
        rows = len(self.lengths) + len(index)
        self.memory.make_room(rows, longest, min(tokens_ahead, CHUNK))
        self.memory.append(prompts.memory, index, longest)
        self.siblings.join(index, lengths)
        self._changed(np.concatenate([self.lengths, lengths]))

    def leave(self, targets: Sequence[int], sources: Sequence[int], rows: int) -> None:
        """Moves rows from `sources` to the indices of ended ones, `targets`; `rows` remain."""
        self.memory.move(targets, sources, rows)
        self.siblings.leave(targets, sources, rows)
        self.lengths[targets] = self.lengths[sources]
        self._changed(self.lengths[:rows])

    def step(self, tokens_N: Tensor) -> Tensor:
        """Returns logits_NV after one more token in every row."""
        memory = self.memory
        if memory.end == memory.capacity[1]:
            memory.make_room(len(self.lengths), 0, CHUNK)
            self._changed(self.lengths)
        logits_NV = self._forward(
            memory, self.cache, tokens_N[:, None], self._first_N, self._even, self.plan
        )
        memory.end += 1
        self.lengths += 1
        return logits_NV

    def _changed(self, lengths: np.ndarray) -> None:
        self.lengths = lengths
        memory = self.memory
        first = memory.end - lengths
        memory.start = int(first.min()) if len(first) else memory.end
        self._even = not len(first) or memory.start == int(first.max())
        self._first_N = torch.from_numpy(first).to(self.device)
        if self.finished_mask and self.device.type == "cpu":
            self.plan = self.siblings.plan(first - memory.start, self.longest)

    def _run(
        self, prompts: list[list[int]], starts: list[tuple[CachedPrompt, int] | None]
    ) -> Prompts:
        cached_lengths = [start[1] if start else 0 for start in starts]
        new_lengths = [
            len(prompt) - cached for prompt, cached in zip(prompts, cached_lengths, strict=True)
        ]
        width = max(new_lengths)
        before = max(map(len, prompts)) - width
        memory = RowMemory(self.layout, len(prompts), before + width, before, self.device)
        if any(cached_lengths):  # else the pass writes every column
            memory.clear(before + width - min(new_lengths))
        for row, start in enumerate(starts):
            if start:
                cached, length = start
                end = before + width - new_lengths[row]
                memory.load(row, end, cached.memory, (cached.row, cached.first), length)
        memory.resize(len(prompts))
        memory.start = 0
        suffixes = [p[h:] for p, h in zip(prompts, cached_lengths, strict=True)]
        ids = [[self.pad_id] * (width - len(tokens)) + tokens for tokens in suffixes]
        first = before + width - np.array([len(prompt) for prompt in prompts])
        ragged = len(set(new_lengths)) > 1
        if ragged and any(cached_lengths):
            behind = width - torch.tensor(new_lengths, device=self.device)
            memory.real_NS = torch.arange(width, device=self.device) >= behind[:, None]
        even = not first.any()
        logits_UV = self._forward(
            memory,
            memory.as_cache(),
            torch.tensor(ids, device=self.device),
            torch.from_numpy(first).to(self.device),
            even,
        )
        memory.end += width
        memory.real_NS = None
        return Prompts(prompts, memory, logits_UV)

    def _forward(
        self,
        memory: RowMemory,
        cache: object,
        ids_NS: Tensor,
        first_N: Tensor,
        even: bool,
        plan: Plan | None = None,
    ) -> Tensor:
        """Returns logits of the last column; `even`: every row begins at the first column."""
        count = ids_NS.shape[1]
        end = memory.end + count
        columns_T = torch.arange(memory.start, end, device=self.device)
        columns_S = columns_T[-count:]
        options = {}
        if self.takes_positions:
            options["position_ids"] = (columns_S - first_N[:, None]).clamp_(min=0)
        if even and (count == 1 or memory.end == memory.start):
            mask = None  # nothing is padded
        else:
            mask = columns_T >= first_N[:, None]
            if not self.finished_mask:
                mask = mask.long()
            elif count == 1:
                mask = mask[:, None, None, :]
            else:
                # A column without a token attends to itself: a softmax over nothing is NaN.
                causal_ST = columns_T <= columns_S[:, None]
                itself_ST = columns_T == columns_S[:, None]
                mask = ((mask[:, None, :] & causal_ST) | itself_ST)[:, None]
        with attending(self.model, plan, mask) if plan else nullcontext():
            return self.model(
                input_ids=ids_NS,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                **options,
            ).logits[:, -1]


def _shares_heads(model: PreTrainedModel) -> bool:
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_attention_heads", None)
    return (getattr(config, "num_key_value_heads", None) or heads) != heads
