"""Terms of a loss: sums over one micro-batch, and the units by which the whole batch divides them.

Invariant: every loss here is (sum over micro-batches) / (units of the whole batch), so a batch
gives the same loss and the same gradient however it is split, padded or ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.config.columns import names_of
from engine.config.heads import heads_of
from engine.config.loss import Aggregation, LossConfig

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0  # e^20: far beyond every clip range, and still finite in float32


@dataclass(frozen=True)
class BatchUnits:
    """Denominators of a whole minibatch, over all ranks."""

    policy: int
    """Units of the policy loss's aggregation: tokens or sequences."""
    tokens: int
    sequences: int = 1
    """Rows with tokens."""
    demonstrated: int = 0
    """Tokens of demonstrations among `tokens`."""

    @property
    def sampled(self) -> int:
        """Tokens that the policy sampled; at least 1, so that it can be a divisor."""
        return max(1, self.tokens - self.demonstrated)


@dataclass(frozen=True)
class Rows:
    """Sequences to learn from, (N, L) each unless stated otherwise; log-probs are natural, and all
    but heads is without gradient."""

    old_logprobs_NL: Tensor
    """Under the learner's weights at the start of the update."""
    rollout_logprobs_NL: Tensor
    """As recorded by the generator."""
    advantages_NL: Tensor
    """Those of a sequence are equal unless its method has one for each token."""
    mask_NL: Tensor
    """Set at output tokens of the agent."""
    reference_logprobs_NL: Tensor | None = None
    """Under the agent's starting weights; None unless `LossConfig.reads_reference`."""
    old_entropies_NL: Tensor | None = None
    """Of the learner's distribution before each token, in nats, under the weights at the start of
    the update; None where they are the current weights."""
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    """Numbers of the sequences, (N,) each: those that the loss names in `NEEDS`, and those that it
    computed over the minibatch."""
    demonstrations_N: Tensor | None = None
    """True for sequences that the policy is shown and did not sample; None if there are none."""
    heads: Mapping[str, Tensor] = field(default_factory=dict)
    """Outputs of the heads in the loss's `HEADS`, by name, with gradient: (N, L) for one that reads
    tokens, (N,) for one that reads prompts."""

    @property
    def sampled_NL(self) -> Tensor:
        """The mask of the tokens that the policy sampled."""
        if self.demonstrations_N is None:
            return self.mask_NL
        return self.mask_NL.where(~self.demonstrations_N[:, None], 0)


@dataclass(frozen=True, kw_only=True)
class LossContext(Rows):
    """What a policy loss reads of one micro-batch. Advantages are 0 in the padding."""

    logprobs_NL: Tensor
    """Under the current weights; it and the heads alone have a gradient."""
    entropies_NL: Tensor | None = None
    """`old_entropies_NL`, or those of the current weights where these are the old ones; without
    gradient. There if `NEEDS` has `entropies`."""
    units: BatchUnits = BatchUnits(1, 1)
    """Of the whole minibatch."""
    config: LossConfig

    @property
    def options(self) -> Any:
        """The method's own `Options`; None if it has none."""
        return self.config.options("policy")


@dataclass(frozen=True)
class LossTerms:
    """Terms of a policy loss; values in the padding are not used."""

    per_token_NL: Tensor
    """With gradient, before the rollout correction; averaged as `loss.aggregation` says."""
    clipped_NL: Tensor | None = None
    """True where a clip changed the gradient; None: nowhere."""
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    """Further numbers of each token, (N, L) or (N, 1), by name, whose means over tokens an update
    reports. The method's `FIGURES` has their titles. Which names there are depends on settings
    alone: ranks add them up."""
    per_sequence_N: Tensor | None = None
    """A further term of each sequence, with gradient and without correction; averaged over the
    sequences of the minibatch."""


@dataclass(frozen=True)
class LossSums:
    """Sums of one micro-batch, to be divided by the units of the whole batch, not of this part."""

    loss_sum: Tensor
    """Scalar with gradient."""
    clipped_sum: Tensor
    """Scalar without gradient: units in which a clip changed the gradient."""
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    """Scalars without gradient: sums over tokens of the method's own figures."""
    sequence_sum: Tensor | None = None
    """Scalar with gradient: sum over sequences of the terms that they have."""


class PolicyLoss(Protocol):
    """A module of `methods`: the terms of the loss, and the aggregation of its paper."""

    @property
    def AGGREGATION(self) -> Aggregation: ...

    def loss_terms(self, context: LossContext) -> LossTerms: ...


def policy_loss_of(module: Any) -> PolicyLoss:
    """Returns a module as the policy loss that it holds.

    Raises:
        ValueError: it holds none.
    """
    if not isinstance(getattr(module, "AGGREGATION", None), Aggregation):
        raise ValueError("has no AGGREGATION of engine.config.loss.Aggregation")
    if not callable(getattr(module, "loss_terms", None)):
        raise ValueError("has no function loss_terms(context)")
    names_of(module, "NEEDS")
    heads_of(module)
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
