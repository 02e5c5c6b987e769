"""Attention within a trie of segments, as an attention function of transformers.

Segments with equally many tokens above them are attended to together, padded to the longest of
their batch. Each batch is one call of PyTorch's scaled dot-product attention, which uses its
flash kernel on the CPU and on CUDA: nothing is computed between rows that do not attend to each
other, and no mask of all pairs of tokens is ever made.

Invariant: outside of `attending` the model is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from engine.policy.batching import length_buckets
from engine.policy.learner.trie import Segment, Trie

NAME = "grove_segments"
HANDLED = frozenset({"position_ids", "use_cache", "output_attentions", "is_causal"})
"""Keyword arguments of an attention function that change nothing here."""


class NotPackable(ValueError):
    """The model's attention needs something that segments do not support; names it."""


@dataclass(frozen=True)
class SegmentBatch:
    """N segments of at most R tokens with P tokens above each."""

    queries_NR: Tensor
    """Layout indices of the segments' tokens; padding on the right repeats the last one."""
    above_NP: Tensor | None
    mask_RK: Tensor | None
    """Which of the P + R keys each token attends to; None: causal, where P is 0."""


@dataclass(frozen=True)
class AttentionPlan:
    """The batches in which a trie is attended to."""

    batches: list[SegmentBatch]
    output_index_T: Tensor
    """Index of each token of the layout in the batches' concatenated outputs."""


@dataclass
class Attended:
    """A forward pass in progress."""

    plan: AttentionPlan
    config: Any
    """The model's config, which names its attention function."""
    layers: int = 0
    """Number of layers that have called it."""


_attended: ContextVar[Attended | None] = ContextVar("forward pass under way", default=None)


def plan_attention(trie: Trie, device: torch.device) -> AttentionPlan:
    """Returns the batches of a trie's segments."""
    batches, output_index_T, filled = [], np.zeros(trie.tokens, dtype=np.int64), 0
    for group in segment_batches(trie):
        batch = [trie.segments[i] for i in group]
        width = max(s.length for s in batch)
        for number, segment in enumerate(batch):
            own = np.arange(segment.length)
            output_index_T[segment.start + own] = filled + number * width + own
        filled += len(batch) * width
        batches.append(_segment_batch(batch, width, device))
    return AttentionPlan(batches, torch.from_numpy(output_index_T).to(device))


def segment_batches(trie: Trie) -> list[list[int]]:
    """Returns, by batch, the indices of the segments that are attended to together."""
    groups: list[list[int]] = []
    above = [len(segment.above_P) for segment in trie.segments]
    numbers = sorted(range(len(above)), key=lambda number: (above[number], number))
    for _, same in groupby(numbers, key=lambda number: above[number]):
        alike = list(same)
        lengths = [trie.segments[number].length for number in alike]
        for bucket in length_buckets(lengths, trie.tokens * len(alike)):
            groups.append([alike[i] for i in bucket])
    return groups


def attention_area(trie: Trie, batch: list[int]) -> tuple[float, int]:
    """Returns (pairs of tokens that a batch attends to, keys that it copies)."""
    above = len(trie.segments[batch[0]].above_P)
    width = max(trie.segments[number].length for number in batch)
    pairs = width * (above + (width if above else width / 2))  # without a mask half is skipped
    return len(batch) * pairs, len(batch) * (above + width)


@contextmanager
def attending(model: PreTrainedModel, plan: AttentionPlan) -> Iterator[None]:
    """Sets the model's attention to that of the plan's trie, for a batch of one sequence.

    Raises:
        NotPackable: the model did not call it, or passed options that it does not support.
    """
    attended = Attended(plan, model.config)
    with _attending_step(attended):
        yield
    if not attended.layers:
        raise NotPackable("its attention is not that of transformers' attention functions")


def as_attended() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Returns contexts for a part of the current forward pass and for its recomputation, which
    must attend in the same way, later and possibly on another thread."""
    attended = _attended.get()
    return nullcontext(), nullcontext() if attended is None else _attending_step(attended)


@contextmanager
def _attending_step(attended: Attended) -> Iterator[None]:
    before = attended.config._attn_implementation
    attended.config._attn_implementation = NAME
    token = _attended.set(attended)
    try:
        yield
    finally:
        _attended.reset(token)
        attended.config._attn_implementation = before


def _segment_batch(batch: list[Segment], width: int, device: torch.device) -> SegmentBatch:
    queries_NR = np.stack([s.start + np.minimum(np.arange(width), s.length - 1) for s in batch])
    above, above_NP, mask_RK = len(batch[0].above_P), None, None
    if above:
        above_NP = torch.from_numpy(np.stack([s.above_P for s in batch])).to(device)
        mask_RK = causal_lower_right(width, above + width)
        if device.type == "cpu":  # made once; on CUDA the kernel needs none
            mask_RK = torch.ones(width, above + width, dtype=torch.bool).tril(above)
    return SegmentBatch(torch.from_numpy(queries_NR).to(device), above_NP, mask_RK)


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options,
) -> tuple[Tensor, None]:
    """query (1, H, T, D), key and value (1, G, T, D); returns (1, T, H, D)."""
    attended = _attended.get()
    assert attended is not None
    attended.layers += 1
    odd = [k for k, v in options.items() if k not in HANDLED and not (v is None or v is False)]
    if odd or options.get("is_causal") is False:
        raise NotPackable(f"its attention takes {', '.join(odd) or 'no causal mask'}")
    query_THD, key_THD, value_THD = (x[0].transpose(0, 1) for x in (query, key, value))
    outputs = []
    for batch in attended.plan.batches:
        out_NHRD = scaled_dot_product_attention(
            _gathered(query_THD, batch.queries_NR),
            _with_above(key_THD, batch),
            _with_above(value_THD, batch),
            attn_mask=batch.mask_RK,
            is_causal=batch.mask_RK is None,
            dropout_p=dropout,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        outputs.append(out_NHRD.transpose(1, 2).flatten(0, 1))
    flat = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    return flat.index_select(0, attended.plan.output_index_T)[None], None


def _with_above(x_THD: Tensor, batch: SegmentBatch) -> Tensor:
    own = batch.queries_NR
    columns = own if batch.above_NP is None else torch.cat([batch.above_NP, own], dim=1)
    return _gathered(x_THD, columns)


def _gathered(x_THD: Tensor, index_NK: Tensor) -> Tensor:
    """Returns (N, H, K, D)."""
    gathered = x_THD.index_select(0, index_NK.flatten())
    return gathered.unflatten(0, index_NK.shape).transpose(1, 2)


AttentionInterface.register(NAME, _attend)
