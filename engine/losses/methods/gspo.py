"""Group sequence policy optimisation (arXiv 2507.18071; mars2.md, section 7).

    s_v = exp(mean_t(log pi_theta - log pi_old))
    maximise mean_v mean_t w_vt min(s_v A_v, clip(s_v, 1 - clip_low, 1 + clip_high) A_v)
One ratio per sequence: a clipped sequence gives no gradient at all. Unit of the mean: a sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.losses.terms import (
    LOG_RATIO_LIMIT,
    LossTerms,
    masked_log_ratio,
    masked_sum,
    sequences,
)

units = sequences


def sequence_ratios(logprobs_NL: Tensor, old_logprobs_NL: Tensor, mask_NL: Tensor) -> Tensor:
    """s_N, the geometric mean of each row's token ratios; 1 for a row without tokens."""
    sums_N = masked_log_ratio(logprobs_NL, old_logprobs_NL, mask_NL).sum(dim=-1)
    return (sums_N / _lengths(mask_NL)).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def terms(
    logprobs_NL: Tensor,
    old_logprobs_NL: Tensor,
    advantages_NL: Tensor,
    mask_NL: Tensor,
    weights_NL: Tensor,
    clip_low: float,
    clip_high: float,
) -> LossTerms:
    """Sum over sequences of their mean token loss."""
    ratios_N1 = sequence_ratios(logprobs_NL, old_logprobs_NL, mask_NL).unsqueeze(-1)
    free_NL = ratios_N1 * advantages_NL
    clipped_NL = ratios_N1.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages_NL
    gains_NL = weights_NL * torch.minimum(free_NL, clipped_NL)
    loss_sum = -(masked_sum(gains_NL, mask_NL, dim=-1) / _lengths(mask_NL)).sum()
    cut_NL = (clipped_NL < free_NL).to(logprobs_NL.dtype)
    clipped_sum = (masked_sum(cut_NL, mask_NL, dim=-1) / _lengths(mask_NL)).sum()
    return LossTerms(loss_sum, clipped_sum)


def _lengths(mask_NL: Tensor) -> Tensor:
    return mask_NL.bool().sum(dim=-1).clamp(min=1)
