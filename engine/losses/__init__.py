"""Losses that an agent minimises over its own nodes.

A new policy loss is one module in `methods` and one line of this registry (docs/extending.md). A
learner calls `count_units` once for its whole batch, then `total_loss` per micro-batch, and adds
up the gradients.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.config.loss import Aggregation, LossConfig
from engine.config.methods import Methods
from engine.losses import aggregation
from engine.losses.methods import cispo, flowrl, gspo, mixed_policy, pacs, ppo, zvp
from engine.losses.terms import LossContext, LossSums, PolicyLoss, masked_sum, policy_loss_of

if TYPE_CHECKING:  # the site reads the options of losses without torch
    from torch import Tensor

POLICY_LOSSES: Methods[PolicyLoss] = Methods(
    "losses",
    policy_loss_of,
    cispo,
    flowrl,
    gspo,
    mixed_policy,
    pacs,
    ppo,
    zvp,
)


def policy_loss(context: LossContext, weights_NL: Tensor) -> LossSums:
    """Returns the sums of one micro-batch under the configured loss; only `logprobs_NL` and
    the heads get a gradient.

    `weights_NL` are those of the rollout correction. All tensors are padded arbitrarily.
    """
    config, mask_NL = context.config, context.mask_NL
    in_mask_NL = mask_NL.bool()
    # A NaN in the padding would pass through a product into the gradient, even if masked.
    context = replace(context, advantages_NL=context.advantages_NL.where(in_mask_NL, 0.0))
    terms = POLICY_LOSSES[config.policy].loss_terms(context)
    loss_NL = weights_NL.where(in_mask_NL, 0.0) * terms.per_token_NL
    kind = _aggregation(config)
    clipped_NL = mask_NL.new_zeros(mask_NL.shape) if terms.clipped_NL is None else terms.clipped_NL
    return LossSums(
        aggregation.summed(loss_NL, mask_NL, kind, config.aggregation_tokens),
        aggregation.share(clipped_NL.to(loss_NL.dtype), mask_NL, kind),
        {
            name: masked_sum(values_NL.detach().to(loss_NL.dtype).expand_as(loss_NL), mask_NL)
            for name, values_NL in terms.figures.items()
        },
        None
        if terms.per_sequence_N is None
        else terms.per_sequence_N.where(in_mask_NL.any(dim=-1), 0.0).sum(),
    )


def policy_units(mask_NL: Tensor, config: LossConfig) -> int:
    """Returns the configured loss's denominator, in sequences or tokens; additive over rows."""
    return aggregation.units(mask_NL, _aggregation(config))


def _aggregation(config: LossConfig) -> Aggregation:
    return config.aggregation or POLICY_LOSSES[config.policy].AGGREGATION
