"""Layouts of the learner's rows in forward passes, and the choice of the cheapest.

    padded   rows of similar length stacked, padded to the longest
    packed   rows concatenated, without padding
    prefix   packed, with a prefix that rows share forwarded once for all of them
    auto     padded or prefix, whichever is cheaper by the cost model below

All give the same loss and the same gradient up to rounding: scaled to norm 1, as clipping does, no
element of two gradients differs by more than 1e-9 in float64 and 1e-6 in float32. bfloat16 rounds
every activation to 8 bits, in any layout, and two layouts differ as much.

Rules:
- A model that drops units at random in training (attention, residual or LoRA dropout) shares no
  prefix: siblings of one prefix would all lose the same units. `auto` then means padded, so that
  a row's draws do not depend on the cost model, and `prefix` means packed.
- A model whose attention is not plain causal (sliding windows, chunks, sinks, soft caps,
  recurrence), or that does not call the attention function of transformers, is padded; so is one
  whose trial, a packed forward pass of a few tokens, disagrees with the padded one.

Invariant: the choice depends on the rows and the model's shape, never on a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from engine.config.training import RowLayout
from engine.policy.batching import length_buckets
from engine.policy.learner.forward import (
    PackedRows,
    PaddedRows,
    inputs_of,
    output_logprobs,
    pack_rows,
    pad_rows,
)
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.segments import NotPackable, attention_area, segment_batches
from engine.policy.learner.trie import MIN_SAVED, Trie, pack, share_prefixes, sorted_rows

KEYS_PER_TOKEN = 8
"""Most keys that a packed forward pass may read, per token of its budget: siblings each hold a
copy of their prefix's keys and values."""
WORTHWHILE = 0.9
"""Share of the padded layout's cost below which `auto` chooses prefix."""
CALL, PAIR, KEY = 2e6, 3.0, 8.0
"""Cost of one attention call, of a multiplication in attention and of a copied element, in
multiplications of a large matrix product; measured on CPUs."""


@dataclass(frozen=True)
class ModelShape:
    """Cost of a forward pass, in multiplications."""

    layers: int
    token: float
    """Per token, in the layers' matrices."""
    scored: float
    """Per position whose next token is scored: the output layer."""
    pair: float
    """Per layer and attended pair of tokens."""
    key: float
    """Per layer and key: elements of its key and value."""

    @classmethod
    def of(cls, model: PreTrainedModel) -> ModelShape:
        config = model.config.get_text_config()
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        groups = getattr(config, "num_key_value_heads", None) or heads
        embeddings = {id(p) for p in model.get_input_embeddings().parameters()}
        head = model.get_output_embeddings()
        outputs = list(head.parameters()) if head is not None else []
        embeddings |= {id(p) for p in outputs}
        inner = sum(p.numel() for p in model.parameters() if p.ndim > 1 and id(p) not in embeddings)
        return cls(
            layers=config.num_hidden_layers,
            token=float(inner),
            scored=float(sum(p.numel() for p in outputs)),
            pair=2.0 * heads * width,
            key=2.0 * groups * width,
        )


@dataclass(frozen=True)
class MicroBatches:
    """One batch, cut and laid out."""

    parts: list[PaddedRows | PackedRows]
    layout: RowLayout
    forwarded: int
    """Tokens of all forward passes, padding included."""


class Layout:
    """Cuts batches of rows for one model."""

    def __init__(
        self,
        model: PreTrainedModel,
        requested: RowLayout,
        max_tokens: int,
        pad_id: int,
        dtype: torch.dtype | None = None,
    ):
        """`dtype` is the one in which the model runs, if it is not that of its weights."""
        self.dtype = dtype or model.dtype
        self.max_tokens = max_tokens
        self.pad_id = pad_id
        self.device = model.device
        self.reason = ""
        """Why the layout is not `requested`, or empty."""
        self.allowed = self._allowed(model, requested)
        self.shape = ModelShape.of(model) if self.allowed is RowLayout.AUTO else None

    def micro_batches(self, rows: Sequence[TrainingRow]) -> MicroBatches:
        """Returns the rows in forward passes of at most `max_tokens`, except for longer rows."""
        if not rows or self.allowed is RowLayout.PADDED:
            return self._padded(rows, self._buckets(rows))
        if self.allowed is RowLayout.PACKED:
            return self._packed(rows, self._runs(rows, pack), RowLayout.PACKED)
        if self.allowed is RowLayout.PREFIX:
            return self._packed(rows, self._runs(rows, share_prefixes), RowLayout.PREFIX)
        buckets, runs = self._buckets(rows), self._runs(rows, share_prefixes)
        padded = sum(self._padded_cost([rows[i] for i in bucket]) for bucket in buckets)
        shared = sum(self._packed_cost([rows[i] for i in run], trie) for run, trie in runs)
        if shared > WORTHWHILE * padded:
            return self._padded(rows, buckets)
        return self._packed(rows, runs, RowLayout.PREFIX)

    def _allowed(self, model: PreTrainedModel, requested: RowLayout) -> RowLayout:
        if requested is RowLayout.PADDED:
            return requested
        if dropout := _dropout(model):
            self.reason = f"{dropout} drops units at random"
            if requested is RowLayout.AUTO:
                return RowLayout.PADDED
            requested = RowLayout.PACKED
        return self._tried(model, requested)

    def _tried(self, model: PreTrainedModel, requested: RowLayout) -> RowLayout:
        if problem := _unpackable_reason(model, self.dtype):
            self.reason = problem
            return RowLayout.PADDED
        return requested

    def _buckets(self, rows: Sequence[TrainingRow]) -> list[list[int]]:
        lengths = [len(row.prompt_ids) + len(row.output_ids) for row in rows]
        return length_buckets(lengths, self.max_tokens)

    def _runs(
        self, rows: Sequence[TrainingRow], laid_out: Callable[[Sequence[list[int]]], Trie]
    ) -> list[tuple[list[int], Trie]]:
        """Returns the rows of each forward pass, with its trie."""
        inputs = [inputs_of(row) for row in rows]
        if laid_out is pack:
            order = sorted(range(len(rows)), key=lambda row: (-len(inputs[row]), row))
            common = [0] * len(rows)
        else:
            order, alike = sorted_rows(inputs)
            # A cut must save MIN_SAVED tokens, so a row may share that many fewer than it could.
            common = [max(0, int(tokens) - MIN_SAVED) for tokens in alike]
        runs: list[list[int]] = []
        tokens = keys = 0
        for row, shared in zip(order, common, strict=True):
            tokens, keys = tokens + len(inputs[row]) - shared, keys + len(inputs[row])
            if not runs or tokens > self.max_tokens or keys > KEYS_PER_TOKEN * self.max_tokens:
                runs.append([])
                tokens = keys = len(inputs[row])
            runs[-1].append(row)
        return [(run, laid_out([inputs[row] for row in run])) for run in runs]

    def _padded(self, rows: Sequence[TrainingRow], buckets: list[list[int]]) -> MicroBatches:
        parts = [pad_rows([rows[i] for i in b], self.pad_id, self.device) for b in buckets]
        forwarded = sum(part.ids.numel() for part in parts)
        return MicroBatches(list(parts), RowLayout.PADDED, forwarded)

    def _packed(
        self, rows: Sequence[TrainingRow], runs: list[tuple[list[int], Trie]], kind: RowLayout
    ) -> MicroBatches:
        parts = [
            pack_rows([rows[i] for i in run], trie, self.pad_id, self.device) for run, trie in runs
        ]
        return MicroBatches(list(parts), kind, sum(trie.tokens for _, trie in runs))

    def _padded_cost(self, rows: Sequence[TrainingRow]) -> float:
        assert self.shape is not None
        prompts = max(len(row.prompt_ids) for row in rows)
        width = max(len(row.output_ids) for row in rows)
        length = prompts + width
        ragged = len({(len(row.prompt_ids), len(row.output_ids)) for row in rows}) > 1
        area = len(rows) * length**2 * (1.0 if ragged else 0.5)  # without a mask half is skipped
        shape = self.shape
        return (
            len(rows) * length * shape.token
            + len(rows) * (width + 1) * shape.scored
            + shape.layers * (PAIR * area * shape.pair + CALL)
        )

    def _packed_cost(self, rows: Sequence[TrainingRow], trie: Trie) -> float:
        assert self.shape is not None
        scored = min(sum(len(row.output_ids) for row in rows), trie.tokens)
        shape, attention = self.shape, 0.0
        for batch in segment_batches(trie):
            area, keys = attention_area(trie, batch)
            attention += PAIR * area * shape.pair + KEY * keys * shape.key + CALL
        return trie.tokens * shape.token + scored * shape.scored + shape.layers * attention


def _dropout(model: PreTrainedModel) -> str:
    """Returns the name of a part of the model with dropout, or an empty string."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout) and module.p > 0:
            return name
        if getattr(module, "attention_dropout", 0.0):  # a number passed to attention
            return f"{name}.attention_dropout"
    return ""


def _unpackable_reason(model: PreTrainedModel, dtype: torch.dtype) -> str:
    """Returns why rows cannot be packed for this model, or an empty string."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if odd := kinds - {"full_attention"}:
        return f"layers of {', '.join(sorted(odd))}"
    windows = ("sliding_window", "attention_chunk_size")
    for name in windows:
        used = getattr(config, f"use_{name}", True)
        if getattr(config, name, None) and used and not getattr(config, "layer_types", None):
            return f"its attention has a {name}"
    return _trial(model, dtype)


@torch.no_grad()
def _trial(model: PreTrainedModel, dtype: torch.dtype) -> str:
    """Forwards a few tokens in both layouts; returns why they cannot be packed, or an empty
    string."""
    top = model.get_input_embeddings().num_embeddings
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 48
    ids = [7 * n % top for n in range(min(24, longest // 2))]
    rows = [TrainingRow(ids, [n, n + 1, n], [0.0] * 3, 0.0, 0) for n in range(3)]
    trie = share_prefixes([inputs_of(row) for row in rows])
    training = model.training
    model.eval()
    try:
        device = model.device
        expected, _ = output_logprobs(model, pad_rows(rows, 0, device))
        actual, _ = output_logprobs(model, pack_rows(rows, trie, 0, device))
    except (NotPackable, TypeError, ValueError, KeyError, AttributeError) as error:
        return str(error).splitlines()[0]
    finally:
        model.train(training)
    gap = float((actual - expected).abs().max())
    spread = float((expected - expected.mean()).abs().max())
    tolerance = 0.5 * spread + 0.05 if dtype.itemsize < 4 else 0.01 * spread + 1e-5
    return "" if gap < tolerance else f"a packed forward pass is {gap:.1g} nats off"
