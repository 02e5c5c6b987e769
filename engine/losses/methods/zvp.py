"""Loss of RL-ZVP: `ppo` with advantages by entropy in trees of zero variance (arXiv 2509.21880).

    all nodes right: A_vt = alpha H_vt
    all nodes wrong: A_vt = -alpha (max over the node's tokens of H - H_vt)
H is that of the weights with which the update starts, in nats, without gradient. The column
`zero_variance` of `credit.advantage = "rl_zvp"` marks the trees. The paper prints no alpha; the
default is ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from engine.config.base import Settings
from engine.config.loss import Aggregation
from engine.config.methods import Figure
from engine.losses.methods import ppo
from engine.losses.surrogate import SURROGATE_FIGURES
from engine.losses.terms import LossContext, LossTerms

if TYPE_CHECKING:
    from torch import Tensor

AGGREGATION = Aggregation.TOKEN_MEAN
CLIPS = DUAL_CLIPS = True
NEEDS = {"entropies", "zero_variance"}
FIGURES = {
    **SURROGATE_FIGURES,
    "by_entropy": Figure("Share of tokens with an advantage by entropy", unit="share"),
}


class Options(Settings):
    """RL-ZVP."""

    alpha: float = Field(0.1, ge=0, le=10)
    """Weight of the entropies of a tree whose nodes are all right, or all wrong."""


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token by its own ratio and advantage."""
    marks_N = context.columns["zero_variance"]
    formed_NL = entropy_advantages(context, marks_N, context.options.alpha)
    terms = ppo.loss_terms(replace(context, advantages_NL=formed_NL))
    return replace(terms, figures={**terms.figures, "by_entropy": (marks_N != 0).unsqueeze(-1)})


def golden_advantages(context: LossContext) -> Tensor:
    """Returns the advantages that it forms in a golden case of the advantage that it needs."""
    return entropy_advantages(context, context.columns["zero_variance"], context.options.alpha)


def entropy_advantages(context: LossContext, marks_N: Tensor, alpha: float) -> Tensor:
    """Returns advantages_NL, replaced in rows whose mark is 1 (all right) or -1 (all wrong)."""
    assert context.entropies_NL is not None  # it is in NEEDS
    entropies_NL = context.entropies_NL.masked_fill(~context.mask_NL.bool(), 0.0)
    marks_N1 = marks_N.unsqueeze(-1)
    highest_N1 = entropies_NL.amax(dim=-1, keepdim=True)
    wrong_NL = (alpha * (entropies_NL - highest_N1)).where(marks_N1 < 0, context.advantages_NL)
    return (alpha * entropies_NL).where(marks_N1 > 0, wrong_NL)
