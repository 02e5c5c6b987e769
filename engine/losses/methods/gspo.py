"""Group sequence policy optimisation (arXiv 2507.18071; docs/algorithm.md, section 7).

    s_v = exp(mean_t(log pi_theta - log pi_old))
    maximise mean_v mean_t w_vt min(s_v A_v, clip(s_v, 1 - clip_low, 1 + clip_high) A_v)
One ratio per sequence: a clipped sequence has no gradient at all. The usual clip is 3e-4 and
4e-4: a mean over many tokens varies far less than a single ratio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.config.golden_kind import Case, Kind
from engine.config.loss import Aggregation
from engine.losses.ragged import mask_of, padded
from engine.losses.surrogate import SURROGATE_FIGURES, clipped_surrogate
from engine.losses.terms import (
    LOG_RATIO_LIMIT,
    LossContext,
    LossTerms,
    lengths,
    masked_log_ratio,
)

if TYPE_CHECKING:
    from torch import Tensor

FIGURES = SURROGATE_FIGURES
AGGREGATION = Aggregation.SEQUENCE_MEAN
CLIPS = DUAL_CLIPS = True


def sequence_ratios(logprobs_NL: Tensor, old_logprobs_NL: Tensor, mask_NL: Tensor) -> Tensor:
    """Returns s_N, the geometric mean of each row's token ratios; 1 for a row without tokens."""
    sums_N = masked_log_ratio(logprobs_NL, old_logprobs_NL, mask_NL).sum(dim=-1)
    return (sums_N / lengths(mask_NL)).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token, which is that of its sequence."""
    ratios_N = sequence_ratios(context.logprobs_NL, context.old_logprobs_NL, context.mask_NL)
    return clipped_surrogate(ratios_N.unsqueeze(-1), context.advantages_NL, context.config)


def _golden_ratio(case: Case) -> Any:
    inputs = case["inputs"]
    logprobs = padded(inputs["log_probs"])
    return sequence_ratios(logprobs, padded(inputs["old_log_probs"]), mask_of(inputs)).tolist()


GOLDEN = {"gspo_ratio": Kind(_golden_ratio, "log_probs old_log_probs", "mask")}
