"""Token-level PPO with clip-higher (PPO, arXiv 1707.06347; DAPO, arXiv 2503.14476).

    rho_vt = exp(log pi_theta - log pi_old)
    maximise mean over all tokens of w_vt min(rho_vt A_v, clip(rho_vt, 1 - low, 1 + high) A_v)
With a group's advantage this is GRPO's objective: by default with a mean over tokens (DAPO; usual
clip 0.2 and 0.28), as published with `aggregation = "sequence_mean"` and a clip of 0.2 both ways.
"""

from __future__ import annotations

from engine.config.loss import Aggregation
from engine.losses.surrogate import SURROGATE_FIGURES, clipped_surrogate
from engine.losses.terms import LossContext, LossTerms, token_ratios

FIGURES = SURROGATE_FIGURES
AGGREGATION = Aggregation.TOKEN_MEAN
CLIPS = DUAL_CLIPS = True


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token by its own ratio."""
    ratios_NL = token_ratios(context.logprobs_NL, context.old_logprobs_NL, context.mask_NL)
    return clipped_surrogate(ratios_NL, context.advantages_NL, context.config)
