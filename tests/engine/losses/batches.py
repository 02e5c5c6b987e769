"""Small batches of random log-probs in float64, with ragged masks."""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.config.columns import ROW_COLUMNS
from engine.config.heads import Reads, heads_of
from engine.config.loss import LossConfig
from engine.losses import POLICY_LOSSES
from engine.losses.minibatch import MinibatchRows, over_minibatch
from engine.losses.terms import Rows


def make_batch(rows=6, length=5, seed=0, spread=0.3):
    """(logprobs_NL with gradient, Rows); no row is empty."""
    generator = torch.Generator().manual_seed(seed)

    def noise():
        return torch.randn(rows, length, generator=generator, dtype=torch.float64)

    old = -noise().abs() - 0.1
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    mask = (torch.arange(length) < lengths[:, None]).to(torch.float64)
    advantages = noise()[:, :1].expand(rows, length)
    logprobs = (old + spread * noise()).requires_grad_()
    return logprobs, Rows(
        old_logprobs_NL=old,
        rollout_logprobs_NL=old + spread * noise(),
        advantages_NL=advantages,
        mask_NL=mask,
        reference_logprobs_NL=old + spread * noise(),
        old_entropies_NL=noise().abs(),
        columns=made_columns(rows),
        heads=made_heads(mask),
    )


def made_columns(rows):
    """A number of each row for every column that a loss of the engine reads: what it names, and
    what its hook over a minibatch gives."""
    numbers = torch.arange(rows, dtype=torch.float64)
    named = frozenset().union(*(LossConfig(policy=one).row_columns for one in POLICY_LOSSES.own))
    columns = {name: numbers % 2 if name in ROW_COLUMNS else numbers % 3 - 1 for name in named}
    compared = MinibatchRows(numbers / 9 - 0.5, numbers + 1, torch.arange(rows) // 3, columns)
    for name in POLICY_LOSSES.own:
        config = LossConfig(policy=name)
        if hook := over_minibatch(config):
            columns = {**columns, **hook(compared, config)}
    return columns


def made_heads(mask_NL):
    """The output of every head that a loss of the engine reads."""
    per_row_N = torch.linspace(-1, 1, len(mask_NL), dtype=torch.float64)
    heads = [heads_of(POLICY_LOSSES.source(name)) for name in POLICY_LOSSES.own]
    return {
        name: per_row_N[:, None].expand(mask_NL.shape) if head.reads is Reads.TOKENS else per_row_N
        for own in heads
        for name, head in own.items()
    }


def part(rows: Rows, which) -> Rows:
    """The rows `which` of a batch."""
    return changed(rows, lambda name, values: values[which])


def changed(rows: Rows, change) -> Rows:
    """The rows with every tensor replaced by `change(name, tensor)`."""
    tensors = {
        name: change(name, value)
        for name, value in vars(rows).items()
        if isinstance(value, torch.Tensor)
    }
    columns = {name: change(name, values) for name, values in rows.columns.items()}
    heads = {name: change(name, values) for name, values in rows.heads.items()}
    return replace(rows, **tensors, columns=columns, heads=heads)
