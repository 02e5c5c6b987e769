"""What one micro-batch gives to a loss, as sums, and what the whole batch divides them by.

Invariant: every loss here is (sum over micro-batches) / (units of the whole batch), so a batch
gives the same loss and the same gradient however it is split, padded or ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0  # e^20: far beyond every clip range, and still finite in float32


@dataclass(frozen=True)
class LossTerms:
    """One micro-batch. To be divided by the units of the whole batch, not of this part."""

    loss_sum: Tensor
    """Scalar with gradient."""
    clipped_sum: Tensor
    """Scalar without gradient: units in which the clip cut off the gradient."""


class PolicyLoss(Protocol):
    """A module of `methods`: its contribution, and the units over which it is a mean."""

    def terms(
        self,
        logprobs_NL: Tensor,
        old_logprobs_NL: Tensor,
        advantages_NL: Tensor,
        mask_NL: Tensor,
        weights_NL: Tensor,
        clip_low: float,
        clip_high: float,
    ) -> LossTerms: ...

    def units(self, mask_NL: Tensor) -> int: ...


def masked_log_ratio(upper_NL: Tensor, lower_NL: Tensor, mask_NL: Tensor) -> Tensor:
    """upper - lower where the mask is set, 0 elsewhere whatever the padding holds."""
    return torch.where(mask_NL.bool(), upper_NL - lower_NL, 0.0)


def masked_sum(values_NL: Tensor, mask_NL: Tensor, dim: int | None = None) -> Tensor:
    """Sum over the set positions; padding may hold anything, also NaN."""
    return torch.where(mask_NL.bool(), values_NL, 0.0).sum(dim)


def tokens(mask_NL: Tensor) -> int:
    """Set positions."""
    return int(mask_NL.bool().sum())


def sequences(mask_NL: Tensor) -> int:
    """Rows with at least one set position; a row of padding is no sequence."""
    return int(mask_NL.bool().any(dim=-1).sum())
