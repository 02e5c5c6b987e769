"""CISPO: clipped importance weights, no clipped tokens (MiniMax-M1, arXiv 2506.13585, eq. 4, 5).

    rho_vt = exp(log pi_theta - log pi_old)
    maximise mean over all tokens of w_vt sg(clip(rho_vt, 1 - low, 1 + high)) A_v log pi_theta
sg stops the gradient: the clip bounds a token's weight, and every token keeps the gradient of its
own log-probability, including the rare ones whose gradient PPO's clip removes first. The source
tunes the upper limit only: `clip_low = 1` sets no lower one.
"""

from __future__ import annotations

from engine.config.loss import Aggregation
from engine.losses.terms import LossContext, LossTerms, token_ratios

AGGREGATION = Aggregation.TOKEN_MEAN
CLIPS = True


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token; clipped are those whose weight was bounded."""
    logprobs_NL, config = context.logprobs_NL, context.config
    ratios_NL = token_ratios(logprobs_NL.detach(), context.old_logprobs_NL, context.mask_NL)
    bounded_NL = ratios_NL.clamp(1.0 - config.clip_low, 1.0 + config.clip_high)
    return LossTerms(-bounded_NL * context.advantages_NL * logprobs_NL, bounded_NL != ratios_NL)
