"""Attention within a trie of segments, as an attention function of transformers.

Segments with equally many tokens above them are attended to together, padded to the longest of
their batch. Each batch is one call of PyTorch's scaled dot-product attention, which takes its
flash kernel on the CPU and on CUDA alike: nothing is computed between rows that do not see each
other, and no mask of all tokens against all is ever made.

Invariant: outside of `attending` the model is as it was.
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
    """The model's attention does something that segments cannot; says what."""


@dataclass(frozen=True)
class SegmentBatch:
    """B segments of at most R tokens with P tokens above each."""

    queries_BR: Tensor
    """Places of the segments' tokens; what stands right of a segment repeats its last."""
    above_BP: Tensor | None
    mask_RK: Tensor | None
    """What each token may see of P + R; None: all before it, where P is 0."""


@dataclass(frozen=True)
class AttentionPlan:
    """How a trie is attended to."""

    batches: list[SegmentBatch]
    places_T: Tensor
    """Where each token of the layout stands in the batches' outputs, laid end to end."""


@dataclass
class Attended:
    """A forward pass under way."""

    plan: AttentionPlan
    config: Any
    """The model's, which names its attention function."""
    layers: int = 0
    """Layers that have asked."""


_attended: ContextVar[Attended | None] = ContextVar("forward pass under way", default=None)


def plan_attention(trie: Trie, device: torch.device) -> AttentionPlan:
    """The batches of a trie's segments."""
    batches, places_T, filled = [], np.zeros(trie.tokens, dtype=np.int64), 0
    for group in segment_batches(trie):
        batch = [trie.segments[i] for i in group]
        width = max(s.length for s in batch)
        for number, segment in enumerate(batch):
            own = np.arange(segment.length)
            places_T[segment.start + own] = filled + number * width + own
        filled += len(batch) * width
        batches.append(_segment_batch(batch, width, device))
    return AttentionPlan(batches, torch.from_numpy(places_T).to(device))


def segment_batches(trie: Trie) -> list[list[int]]:
    """Numbers of the segments that are attended to together."""
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
    """(pairs of tokens that a batch looks at, keys that it copies)."""
    above = len(trie.segments[batch[0]].above_P)
    width = max(trie.segments[number].length for number in batch)
    pairs = width * (above + (width if above else width / 2))  # without a mask half is skipped
    return len(batch) * pairs, len(batch) * (above + width)


@contextmanager
def attending(model: PreTrainedModel, plan: AttentionPlan) -> Iterator[None]:
    """The model's attention is that of the plan's trie, for a batch of one sequence.

    Raises:
        NotPackable: the model did not ask for it, or for more than it does.
    """
    attended = Attended(plan, model.config)
    with _under_way(attended):
        yield
    if not attended.layers:
        raise NotPackable("its attention is not that of transformers' attention functions")


def as_attended() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of a part of a forward pass now, and of its being computed again for its gradient:
    later, and maybe on another thread, it is to attend as it does now."""
    attended = _attended.get()
    return nullcontext(), nullcontext() if attended is None else _under_way(attended)


@contextmanager
def _under_way(attended: Attended) -> Iterator[None]:
    before = attended.config._attn_implementation
    attended.config._attn_implementation = NAME
    token = _attended.set(attended)
    try:
        yield
    finally:
        _attended.reset(token)
        attended.config._attn_implementation = before


def _segment_batch(batch: list[Segment], width: int, device: torch.device) -> SegmentBatch:
    queries_BR = np.stack([s.start + np.minimum(np.arange(width), s.length - 1) for s in batch])
    above, above_BP, mask_RK = len(batch[0].above_P), None, None
    if above:
        above_BP = torch.from_numpy(np.stack([s.above_P for s in batch])).to(device)
        mask_RK = causal_lower_right(width, above + width)
        if device.type == "cpu":  # made once; on CUDA the kernel needs none
            mask_RK = torch.ones(width, above + width, dtype=torch.bool).tril(above)
    return SegmentBatch(torch.from_numpy(queries_BR).to(device), above_BP, mask_RK)


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
        out_BHRD = scaled_dot_product_attention(
            _gathered(query_THD, batch.queries_BR),
            _with_above(key_THD, batch),
            _with_above(value_THD, batch),
            attn_mask=batch.mask_RK,
            is_causal=batch.mask_RK is None,
            dropout_p=dropout,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        outputs.append(out_BHRD.transpose(1, 2).flatten(0, 1))
    flat = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    return flat.index_select(0, attended.plan.places_T)[None], None


def _with_above(x_THD: Tensor, batch: SegmentBatch) -> Tensor:
    own = batch.queries_BR
    places = own if batch.above_BP is None else torch.cat([batch.above_BP, own], dim=1)
    return _gathered(x_THD, places)


def _gathered(x_THD: Tensor, places_BK: Tensor) -> Tensor:
    """(B, H, K, D)"""
    found = x_THD.index_select(0, places_BK.flatten())
    return found.unflatten(0, places_BK.shape).transpose(1, 2)


AttentionInterface.register(NAME, _attend)
