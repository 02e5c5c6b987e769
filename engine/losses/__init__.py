"""Losses that an agent minimises over its own nodes.

A new policy loss is one module in `methods` and one line of this registry (docs/extending.md). A
learner calls `count_units` once for its whole batch, then `total_loss` per micro-batch, and adds
up the gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.loss import Aggregation, LossConfig
from engine.config.methods import Methods
from engine.losses import aggregation
from engine.losses.methods import cispo, gspo, ppo
from engine.losses.terms import LossTerms, PolicyLoss, masked_sum, policy_loss_of

if TYPE_CHECKING:  # the site reads the options of losses without torch
    from torch import Tensor

POLICY_LOSSES: Methods[PolicyLoss] = Methods(
    "losses",
    policy_loss_of,
    cispo,
    gspo,
    ppo,
)


def policy_loss(
    logprobs_NL: Tensor,
    old_logprobs_NL: Tensor,
    advantages_NL: Tensor,
    mask_NL: Tensor,
    weights_NL: Tensor,
    config: LossConfig,
) -> LossTerms:
    """Returns the sums of one micro-batch under the configured loss; only `logprobs_NL` gets a
    gradient.

    All tensors are (sequences, tokens), with natural logarithms and arbitrary padding. The loss of
    a batch is the sum of `loss_sum` over its micro-batches, divided by `policy_units` of the batch.
    """
    in_mask_NL = mask_NL.bool()
    # A NaN in the padding would pass through a product into the gradient, even if masked.
    terms = POLICY_LOSSES[config.policy].token_terms(
        logprobs_NL,
        old_logprobs_NL,
        advantages_NL.where(in_mask_NL, 0.0),
        mask_NL,
        config,
    )
    loss_NL = weights_NL.where(in_mask_NL, 0.0) * terms.loss_NL
    kind = _aggregation(config)
    return LossTerms(
        aggregation.summed(loss_NL, mask_NL, kind, config.aggregation_tokens),
        aggregation.share(terms.clipped_NL.to(loss_NL.dtype), mask_NL, kind),
        {
            name: masked_sum(values_NL.detach().to(loss_NL.dtype).expand_as(loss_NL), mask_NL)
            for name, values_NL in terms.figures.items()
        },
    )


def policy_units(mask_NL: Tensor, config: LossConfig) -> int:
    """Returns the configured loss's denominator, in sequences or tokens; additive over rows."""
    return aggregation.units(mask_NL, _aggregation(config))


def _aggregation(config: LossConfig) -> Aggregation:
    return config.aggregation or POLICY_LOSSES[config.policy].AGGREGATION
