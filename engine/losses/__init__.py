"""Losses: what an agent minimises over its own nodes.

A new policy loss is one module in `methods`, named as here, and one line of this registry. A
learner calls `count_units` once for its whole batch, then `total_loss` per micro-batch, and adds
up the gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import LossConfig
from engine.losses.methods import gspo, ppo
from engine.losses.terms import LossTerms, PolicyLoss

POLICY_LOSSES: dict[str, PolicyLoss] = {
    "gspo": gspo,
    "ppo": ppo,
}


def policy_loss(
    logprobs_NL: Tensor,
    old_logprobs_NL: Tensor,
    advantages_NL: Tensor,
    mask_NL: Tensor,
    weights_NL: Tensor,
    config: LossConfig,
) -> LossTerms:
    """Sums of one micro-batch under the configured loss; only `logprobs_NL` gets a gradient.

    All tensors are (sequences, tokens), natural logarithms, padding anything. The loss of a
    batch is the sum of `loss_sum` over its micro-batches, divided by `policy_units` of the whole.
    """
    written_NL = mask_NL.bool()
    # A NaN in the padding would pass through a product into the gradient, mask or not.
    return POLICY_LOSSES[config.policy].terms(
        logprobs_NL,
        old_logprobs_NL,
        torch.where(written_NL, advantages_NL, 0.0),
        mask_NL,
        torch.where(written_NL, weights_NL, 0.0),
        config.clip_low,
        config.clip_high,
    )


def policy_units(mask_NL: Tensor, config: LossConfig) -> int:
    """What the configured loss is a mean over: sequences or tokens. Additive over rows."""
    return POLICY_LOSSES[config.policy].units(mask_NL)
