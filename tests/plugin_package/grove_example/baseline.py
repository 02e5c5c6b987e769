"""REINFORCE with a learned baseline: -(A - V_t) log pi_theta + cost (V_t - A)^2 of each token."""

from __future__ import annotations

from pydantic import Field

from engine.config.heads import Head, HeadOptions, Reads
from engine.config.loss import Aggregation
from engine.config.methods import Figure
from engine.losses.terms import LossContext, LossTerms

AGGREGATION = Aggregation.TOKEN_MEAN
HEADS = {"value": Head(Reads.TOKENS)}
FIGURES = {"value_error": Figure("Squared error of the baseline", section="Learning")}


class Options(HeadOptions):
    """REINFORCE with a learned baseline."""

    cost: float = Field(0.5, gt=0, le=100)
    """Weight of the squared error of the values."""


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token."""
    gap_NL = context.advantages_NL - context.heads["value"]
    policy_NL = -gap_NL.detach() * context.logprobs_NL
    errors_NL = gap_NL.square()
    return LossTerms(
        policy_NL + context.options.cost * errors_NL, figures={"value_error": errors_NL}
    )
