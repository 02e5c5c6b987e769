"""Terms of a loss: sums over one micro-batch, and the units by which the whole batch divides them.

Invariant: every loss here is (sum over micro-batches) / (units of the whole batch), so a batch
gives the same loss and the same gradient however it is split, padded or ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.config.loss import Aggregation, LossConfig

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0  # e^20: far beyond every clip range, and still finite in float32


@dataclass(frozen=True)
class TokenTerms:
    """Terms of a policy loss per token, (N, L); values in the padding are not used."""

    loss_NL: Tensor
    """With gradient, before the rollout correction."""
    clipped_NL: Tensor
    """True where a clip changed the gradient."""
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    """Further numbers of each token, (N, L), by name, whose means over tokens an update reports.
    The method's `FIGURES` has their titles. Which names there are depends on settings alone: ranks
    add them up."""


@dataclass(frozen=True)
class LossTerms:
    """Sums of one micro-batch, to be divided by the units of the whole batch, not of this part."""

    loss_sum: Tensor
    """Scalar with gradient."""
    clipped_sum: Tensor
    """Scalar without gradient: units in which a clip changed the gradient."""
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    """Scalars without gradient: sums over tokens of the method's own figures."""


class PolicyLoss(Protocol):
    """A module of `methods`: the loss of each token, and the aggregation of its paper."""

    @property
    def AGGREGATION(self) -> Aggregation: ...

    def token_terms(
        self,
        logprobs_NL: Tensor,
        old_logprobs_NL: Tensor,
        advantages_NL: Tensor,
        mask_NL: Tensor,
        config: LossConfig,
    ) -> TokenTerms: ...


def policy_loss_of(module: Any) -> PolicyLoss:
    """Returns a module as the policy loss that it holds.

    Raises:
        ValueError: it holds none.
    """
    if not isinstance(getattr(module, "AGGREGATION", None), Aggregation):
        raise ValueError("has no AGGREGATION of engine.config.loss.Aggregation")
    if not callable(getattr(module, "token_terms", None)):
        raise ValueError("has no function token_terms")
    return module


def token_ratios(logprobs_NL: Tensor, old_logprobs_NL: Tensor, mask_NL: Tensor) -> Tensor:
    """Returns rho_NL, the ratio of policies of each token; 1 outside the mask."""
    log_ratios_NL = masked_log_ratio(logprobs_NL, old_logprobs_NL, mask_NL)
    return log_ratios_NL.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def masked_log_ratio(upper_NL: Tensor, lower_NL: Tensor, mask_NL: Tensor) -> Tensor:
    """Returns upper - lower where the mask is set, 0 elsewhere for any padding."""
    return (upper_NL - lower_NL).where(mask_NL.bool(), 0.0)


def masked_sum(values_NL: Tensor, mask_NL: Tensor, dim: int | None = None) -> Tensor:
    """Returns the sum over the set positions; padding may hold anything, including NaN."""
    return values_NL.where(mask_NL.bool(), 0.0).sum(dim)


def lengths(mask_NL: Tensor) -> Tensor:
    """Returns lengths_N in tokens, at least 1, so that they can be divisors."""
    return mask_NL.bool().sum(dim=-1).clamp(min=1)


def tokens(mask_NL: Tensor) -> int:
    """Returns the number of set positions."""
    return int(mask_NL.bool().sum())


def sequences(mask_NL: Tensor) -> int:
    """Returns the number of rows with at least one set position; padding rows do not count."""
    return int(mask_NL.bool().any(dim=-1).sum())
