"""Rollout correction: importance weights of the learner's policy against the generator's.

With d_t = log pi_old - log pi_rollout (truncated importance sampling; docs/algorithm.md,
section 7):
    token      w_t = exp(d_t)
    sequence   w_t = exp(sum of d over the row)
    geometric  w_t = exp(mean of d over the row)
`truncate` caps a weight at C; `mask` zeroes those outside [1/C, C]. The veto zeroes a whole row
in which some token has exp(d_t) below it: this policy would practically never generate such a row.

Invariant: weights carry no gradient.
"""

from __future__ import annotations

from math import inf, log

import torch
from torch import Tensor

from engine.config.importance import Level, WeightMode
from engine.losses.terms import masked_log_ratio


@torch.no_grad()
def importance_weights(
    old_logprobs_NL: Tensor,
    rollout_logprobs_NL: Tensor,
    mask_NL: Tensor,
    level: Level = Level.TOKEN,
    mode: WeightMode = WeightMode.TRUNCATE,
    threshold: float = inf,
    veto: float | None = None,
) -> Tensor:
    """Returns weights_NL; values outside the mask have no meaning and must not be used."""
    log_ratios_NL = masked_log_ratio(old_logprobs_NL, rollout_logprobs_NL, mask_NL)
    weights_NL = _at_level(log_ratios_NL, mask_NL, level).exp()
    if mode is WeightMode.TRUNCATE:
        weights_NL = weights_NL.clamp(max=threshold)
    else:
        in_range_NL = (weights_NL >= 1.0 / threshold) & (weights_NL <= threshold)
        weights_NL = torch.where(in_range_NL, weights_NL, 0.0)
    if veto is not None:
        vetoed_N1 = (log_ratios_NL < log(veto)).any(dim=-1, keepdim=True)
        weights_NL = torch.where(vetoed_N1, 0.0, weights_NL)
    return weights_NL


def _at_level(log_ratios_NL: Tensor, mask_NL: Tensor, level: Level) -> Tensor:
    if level is Level.TOKEN:
        return log_ratios_NL
    sums_N1 = log_ratios_NL.sum(dim=-1, keepdim=True)
    if level is Level.GEOMETRIC:
        sums_N1 = sums_N1 / mask_NL.bool().sum(dim=-1, keepdim=True).clamp(min=1)
    return sums_N1.expand_as(log_ratios_NL)
