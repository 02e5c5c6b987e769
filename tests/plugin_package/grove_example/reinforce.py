"""REINFORCE over tokens (Williams 1992): minimise the mean of -A_v log pi_theta; without ratios."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings
from engine.config.loss import Aggregation
from engine.config.methods import Figure
from engine.losses.terms import LossContext, LossTerms

AGGREGATION = Aggregation.TOKEN_MEAN
FIGURES = {"unlikely": Figure("Tokens below the floor", unit="share", section="Learning")}


class Options(Settings):
    """REINFORCE over tokens."""

    floor: float = Field(0.1, ge=0, le=1)
    """Tokens of a smaller probability are counted in the figure `unlikely`."""


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token."""
    unlikely_NL = context.logprobs_NL.detach().exp() < context.options.floor
    loss_NL = -context.advantages_NL * context.logprobs_NL
    return LossTerms(loss_NL, figures={"unlikely": unlikely_NL})
