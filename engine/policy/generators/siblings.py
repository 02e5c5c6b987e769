"""Attention that reads the prompt of sibling rows once.

Attention over a prompt's keys and over a row's own decomposes: each is a softmax by itself, and
the two are weighted by their denominators. So the queries of all siblings attend to one copy of
their prompt, as the rows of one matrix product, and each to its own tokens. Exact, except for the
order of sums.

Source: Hydragen (Juravsky et al., arXiv 2402.05099), section 3.

Where several query heads share a key head, all parts attend with the shared head as it is; the
attention of transformers copies keys and values for every query head, at every step, if rows are
padded: with 32 rows of 160 tokens of a model of 135 million weights that took longer than its
matrix products.

Invariants:
- Siblings join in one step from one row of a prompt: their copies of it are equal, and remain in
  the same columns until the rows end.
- Every row has all of its keys, so the model's own attention is correct at any time. A layer that
  passes options unknown here gets its own attention.
- Which rows are attended to in which way depends on shapes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from engine.policy.generators.cache import Layout
from engine.policy.learner.segments import HANDLED

NAME = "grove_siblings"
FAMILY_COST, RUN_COST = 1 << 21, 1 << 18
"""Cost of the extra calls in a layer for a family, or for a run of rows without one, as the bytes
read in that time: 0.15 and 0.02 ms."""

flash_attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
"""The operator behind PyTorch's scaled dot-product attention on the CPU; it also returns the
log-sum-exp. CUDA has another one, and there the model's own attention is used."""


@dataclass(frozen=True)
class Part:
    """Rows that are attended to together."""

    rows: slice | Tensor
    one: int
    """The first of them."""
    first: int
    """First column of the memory's window in which they have tokens."""
    prompt: int
    """Length of the prompt that they share; 0: none."""
    even: bool
    """Whether all of them begin at `first`."""


@dataclass(frozen=True)
class Plan:
    """The parts in which the rows of a batch are attended to."""

    parts: list[Part]
    output_index_N: Tensor | None
    """Index of each row in the parts' concatenated outputs; None: in order."""


class Siblings:
    """The families of siblings among the rows of a batch."""

    def __init__(self, layout: Layout, shares_heads: bool = False):
        """`shares_heads`: whether several query heads share a key head."""
        self.bytes_per_token = layout.bytes_per_token // len(layout.keys)
        """Bytes per token in one layer."""
        self.shares_heads = shares_heads
        self._families = 0
        self._family_N = np.zeros(0, np.int64)
        self._prompt_N = np.zeros(0, np.int64)

    def join(self, index: Sequence[int], lengths: np.ndarray) -> None:
        """Adds rows from prompts of these lengths; siblings have the same number."""
        family = self._families + np.array(index)
        self._families = int(family.max()) + 1
        self._family_N = np.concatenate([self._family_N, family])
        self._prompt_N = np.concatenate([self._prompt_N, lengths])

    def leave(self, targets: Sequence[int], sources: Sequence[int], rows: int) -> None:
        """Moves rows from `sources` to the indices of ended ones, `targets`; `rows` remain."""
        for array in (self._family_N, self._prompt_N):
            array[targets] = array[sources]
        self._family_N, self._prompt_N = self._family_N[:rows], self._prompt_N[:rows]

    def plan(self, first_N: np.ndarray, columns: int) -> Plan | None:
        """Returns the plan for rows that begin at these columns of a window; None if the model's
        own attention costs no more."""
        families, ones, sizes = np.unique(self._family_N, return_index=True, return_counts=True)
        most_saved = (sizes - 1) * self._prompt_N[ones] * self.bytes_per_token
        gain, parts, lone_N = 0, [], np.ones(len(first_N), bool)
        for family in families[most_saved > FAMILY_COST]:
            rows = np.flatnonzero(self._family_N == family)
            part = _part(rows, first_N[rows], int(self._prompt_N[rows[0]]))
            # Own tokens of rows that are not adjacent are copied: written, and read once more.
            own = columns - part.first - part.prompt
            copied = 0 if isinstance(part.rows, slice) else 2 * len(rows) * own
            saved = ((len(rows) - 1) * part.prompt - copied) * self.bytes_per_token - FAMILY_COST
            if saved > 0:
                gain += saved
                parts.append((rows, part))
                lone_N[rows] = False
        if not parts:
            return self._all_rows(first_N)
        lone = np.flatnonzero(lone_N)
        runs = np.split(lone, np.flatnonzero(np.diff(lone) > 1) + 1) if len(lone) else []
        if gain <= RUN_COST * len(runs):
            return self._all_rows(first_N)
        parts += [(rows, _part(rows, first_N[rows], 0)) for rows in runs]
        order = np.concatenate([rows for rows, _ in parts])
        in_order = bool((order[:-1] < order[1:]).all())
        output_index_N = None if in_order else torch.from_numpy(np.argsort(order))
        return Plan([part for _, part in parts], output_index_N)

    def _all_rows(self, first_N: np.ndarray) -> Plan | None:
        if not self.shares_heads or not len(first_N):
            return None
        return Plan([_part(np.arange(len(first_N)), first_N, 0)], None)


def _part(rows: np.ndarray, first: np.ndarray, prompt: int) -> Part:
    adjoin = rows[-1] - rows[0] == len(rows) - 1
    which = slice(int(rows[0]), int(rows[-1]) + 1) if adjoin else torch.from_numpy(rows)
    begin = int(first.min())
    return Part(which, int(rows[0]), begin, prompt, begin == int(first.max()))


@dataclass(frozen=True)
class _Step:
    plan: Plan
    mask: Tensor | None
    """As passed to the model."""


_current_step: ContextVar[_Step | None] = ContextVar("current step", default=None)


@contextmanager
def attending(model: PreTrainedModel, plan: Plan, mask: Tensor | None) -> Iterator[None]:
    """Applies the plan to a pass of one token per row, with this mask over the window's columns."""
    before = model.config._attn_implementation
    model.config._attn_implementation = NAME
    token = _current_step.set(_Step(plan, mask))
    try:
        yield
    finally:
        _current_step.reset(token)
        model.config._attn_implementation = before


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
    """query (N, H, 1, D), key and value (N, G, T, D); returns (N, 1, H, D)."""
    step = _current_step.get()
    assert step is not None
    odd = [k for k, v in options.items() if k not in HANDLED and not (v is None or v is False)]
    if odd or dropout or attention_mask is not step.mask or key.shape[-1] != value.shape[-1]:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **options
        )
    outputs = []
    for part in step.plan.parts:
        if part.prompt:
            outputs.append(_family(query, key, value, part, scaling))
            continue
        rows, columns = part.rows, slice(part.first, None)
        mask = None if part.even else attention_mask[rows, :, :, columns]
        window = key[rows, :, columns], value[rows, :, columns]
        if query.shape[1] != key.shape[1]:
            outputs.append(_grouped(query[rows], *window, mask, scaling))
            continue
        outputs.append(
            sdpa_attention_forward(module, query[rows], *window, mask, dropout, scaling)[0]
        )
    flat = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    output_index_N = step.plan.output_index_N
    return flat if output_index_N is None else flat.index_select(0, output_index_N), None


def _grouped(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None
) -> Tensor:
    """Returns (N, 1, H, D) of rows whose query heads share key heads, with a mask of bools or of
    numbers to add."""
    count, width = len(query), query.shape[-1]
    query_NGRD = query.reshape(count, key.shape[1], -1, width)
    scale = width**-0.5 if scale is None else scale
    scores_NGRT = torch.matmul(query_NGRD * scale, key.transpose(2, 3))
    if mask is not None and mask.dtype == torch.bool:
        scores_NGRT.masked_fill_(~mask, float("-inf"))
    elif mask is not None:
        scores_NGRT += mask
    shares_NGRT = torch.softmax(scores_NGRT, dim=-1, dtype=torch.float32).to(value.dtype)
    return torch.matmul(shares_NGRT, value).reshape(count, 1, -1, width)


def _family(query: Tensor, key: Tensor, value: Tensor, part: Part, scale: float | None) -> Tensor:
    """Returns (R, 1, H, D) for R siblings."""
    query = _rows(query, part)
    count, width, heads, own = len(query), query.shape[-1], key.shape[1], part.first + part.prompt
    # Query heads that share a key head become additional queries to it.
    query_RGND = query.reshape(count, heads, -1, width)
    columns = (slice(part.one, part.one + 1), slice(None), slice(part.first, own))
    of_prompt, prompt_sums = flash_attention(
        query_RGND.transpose(0, 1).reshape(1, heads, -1, width),
        key[columns],
        value[columns],
        scale=scale,
    )
    of_own, own_sums = flash_attention(
        query_RGND, _rows(key[:, :, own:], part), _rows(value[:, :, own:], part), scale=scale
    )
    prompt_sums_RGN = prompt_sums.view(heads, count, -1).transpose(0, 1)
    share_RGN1 = torch.sigmoid(prompt_sums_RGN - own_sums).to(query.dtype).unsqueeze(3)
    of_prompt = of_prompt.reshape(heads, count, -1, width).transpose(0, 1)
    return torch.lerp(of_own, of_prompt, share_RGN1).reshape(count, 1, -1, width)


def _rows(x_N: Tensor, part: Part) -> Tensor:
    return x_N[part.rows] if isinstance(part.rows, slice) else x_N.index_select(0, part.rows)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
