"""The clipped surrogate that ratio-based losses share (PPO, arXiv 1707.06347).

    g = min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)
    with dual clip (arXiv 1912.09729), where A < 0:  g = max(g, dual_clip A)
With a negative advantage the first line alone has no lower bound: one token that has become much
likelier could outweigh a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.loss import LossConfig
from engine.config.methods import Figure
from engine.losses.terms import LossTerms

if TYPE_CHECKING:
    from torch import Tensor


SURROGATE_FIGURES = {"dual_clipped": Figure("Share of tokens at the dual clip", unit="share")}
"""Of every loss that uses this surrogate with `loss.dual_clip` set."""


def clipped_surrogate(ratios_NL: Tensor, advantages_NL: Tensor, config: LossConfig) -> LossTerms:
    """Returns loss -g of every token; `ratios_NL` is (N, L), or (N, 1) for one per sequence."""
    unclipped_NL = ratios_NL * advantages_NL
    clipped_NL = ratios_NL.clamp(1.0 - config.clip_low, 1.0 + config.clip_high) * advantages_NL
    objective_NL = unclipped_NL.minimum(clipped_NL)
    is_clipped_NL = clipped_NL < unclipped_NL
    figures: dict[str, Tensor] = {}
    if config.dual_clip is not None:
        floor_NL = config.dual_clip * advantages_NL
        floored_NL = (advantages_NL < 0) & (objective_NL < floor_NL)
        objective_NL = floor_NL.where(floored_NL, objective_NL)
        is_clipped_NL = is_clipped_NL | floored_NL
        figures["dual_clipped"] = floored_NL
    return LossTerms(-objective_NL, is_clipped_NL, figures)
