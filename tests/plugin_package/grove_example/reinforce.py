"""REINFORCE over tokens (Williams 1992): minimise the mean of -A_v log pi_theta; without ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from engine.config.base import Settings
from engine.config.loss import Aggregation, LossConfig
from engine.config.methods import Figure
from engine.losses.terms import TokenTerms

if TYPE_CHECKING:  # torch is not imported with the module: the site reads its options
    from torch import Tensor

AGGREGATION = Aggregation.TOKEN_MEAN
FIGURES = {"unlikely": Figure("Tokens below the floor", unit="share", section="Learning")}


class Options(Settings):
    """REINFORCE over tokens."""

    floor: float = Field(0.1, ge=0, le=1)
    """Tokens of a smaller probability are counted in the figure `unlikely`."""


def token_terms(
    logprobs_NL: Tensor,
    old_logprobs_NL: Tensor,
    advantages_NL: Tensor,
    mask_NL: Tensor,
    config: LossConfig,
) -> TokenTerms:
    """Returns the loss of every token; none is clipped."""
    unlikely_NL = logprobs_NL.detach().exp() < config.options("policy").floor
    clipped_NL = logprobs_NL.new_zeros(logprobs_NL.shape).bool()
    return TokenTerms(-advantages_NL * logprobs_NL, clipped_NL, {"unlikely": unlikely_NL})
