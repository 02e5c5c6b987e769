"""Small batches of random log-probs in float64, with ragged masks."""

from __future__ import annotations

from dataclasses import replace

import torch

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
        heads={"log_z": noise()[:, 0]},
    )


def made_columns(rows):
    """A number of each row for every column that a loss of the engine reads."""
    numbers = torch.arange(rows, dtype=torch.float64)
    return {
        "zero_variance": numbers % 3 - 1,
        "value": numbers / 3,
        "slope": numbers - 2,
        "error": numbers / 9,
        "scores": numbers % 2,
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
