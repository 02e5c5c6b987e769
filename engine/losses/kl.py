"""Estimators of the divergence to a reference (Schulman 2020, "Approximating KL divergence").

With x = log pi_theta - log pi_ref at the sampled token:
    k1 = x        k2 = x² / 2        k3 = exp(-x) - 1 + x
each clamped to [-10, 10] per token. All three estimate KL(pi_theta || pi_ref); k3 is never negative
and of low variance. As a term of a loss they differ by their expected gradients on policy: k1's is
0 (it restrains nothing and is for monitoring only), k2's is that of KL(pi_theta || pi_ref), k3's is
that of KL(pi_ref || pi_theta).
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config.loss import KlEstimator
from engine.losses.terms import LOG_RATIO_LIMIT, masked_log_ratio

LIMIT = 10.0


def kl_tokens(
    logprobs_NL: Tensor,
    reference_logprobs_NL: Tensor,
    mask_NL: Tensor,
    estimator: KlEstimator = KlEstimator.K3,
) -> Tensor:
    """Returns the estimate per token, 0 outside the mask."""
    log_ratios_NL = masked_log_ratio(logprobs_NL, reference_logprobs_NL, mask_NL)
    # Beyond this limit every estimator is at its clamp already; without it the gradient of an
    # overflowing exp would be inf * 0 = NaN.
    x_NL = log_ratios_NL.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    if estimator is KlEstimator.K1:
        values_NL = x_NL
    elif estimator is KlEstimator.K2:
        values_NL = x_NL**2 / 2
    else:
        values_NL = torch.expm1(-x_NL) + x_NL
    return values_NL.clamp(-LIMIT, LIMIT)
