"""Small batches of random log-probs in float64, with ragged masks."""

from __future__ import annotations

import torch

from engine.losses.total import Rows


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
    )


def part(rows: Rows, which) -> Rows:
    """The rows `which` of a batch."""
    return Rows(**{name: value[which] for name, value in vars(rows).items()})
