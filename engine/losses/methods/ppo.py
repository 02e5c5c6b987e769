"""Token-level PPO with clip-higher (PPO, arXiv 1707.06347; DAPO, arXiv 2503.14476).

    rho_vt = exp(log pi_theta - log pi_old)
    maximise mean over all tokens of w_vt min(rho_vt A_v, clip(rho_vt, 1 - low, 1 + high) A_v)
With the tree-wide or group advantage this is GRPO's objective with a token-level mean (usual
clip: 0.2 and 0.28). Unit of the mean: a token, so a long answer weighs more than a short one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.losses.terms import LOG_RATIO_LIMIT, LossTerms, masked_log_ratio, masked_sum, tokens

units = tokens


def terms(
    logprobs_NL: Tensor,
    old_logprobs_NL: Tensor,
    advantages_NL: Tensor,
    mask_NL: Tensor,
    weights_NL: Tensor,
    clip_low: float,
    clip_high: float,
) -> LossTerms:
    """Sum over tokens of their loss."""
    log_ratios_NL = masked_log_ratio(logprobs_NL, old_logprobs_NL, mask_NL)
    ratios_NL = log_ratios_NL.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    free_NL = ratios_NL * advantages_NL
    clipped_NL = ratios_NL.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages_NL
    gains_NL = weights_NL * torch.minimum(free_NL, clipped_NL)
    cut_NL = (clipped_NL < free_NL).to(logprobs_NL.dtype)
    return LossTerms(-masked_sum(gains_NL, mask_NL), masked_sum(cut_NL, mask_NL))
