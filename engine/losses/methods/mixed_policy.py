"""Mixed policy: a policy's own answers and demonstrations in one group (LUFFY, arXiv 2504.14945).

    own answer:      -A_v rho_vt,  rho_vt = pi_theta / pi_old
    demonstration:   -A_v f(pi_theta),  f(p) = p / (p + gamma)
    loss = (1/N) sum_v (1/T) sum_t of these; N all rows, T `loss.aggregation_tokens`
The probability of a demonstration under its author is taken as 1, so its ratio is pi_theta. f
shapes it: d f / d log p = gamma p / (p + gamma)^2 is largest at p = gamma, so that unlikely tokens
of a demonstration are learned from too, where p itself would hardly move them. From the authors'
code (ElliottYan/LUFFY), whose last runs do not clip the policy's own answers. Demonstrations are
never clipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from engine.config.base import Settings
from engine.config.loss import Aggregation
from engine.config.methods import Figure
from engine.config.misfits import Misfit
from engine.losses.surrogate import clipped_surrogate
from engine.losses.terms import LossContext, LossTerms, token_ratios

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig

AGGREGATION = Aggregation.SEQUENCE_SUM
DUAL_CLIPS = True
NEEDS = {"demonstrations"}
UNLIKELY = 0.1
"""Probability below which a token of a demonstration counts as unlikely, for the figures."""
FIGURES = {
    "shown_probability": Figure("Probability of demonstrated tokens", section="Learning"),
    "unlikely_weight": Figure("Shaped weight of unlikely demonstrated tokens", section="Learning"),
    "unlikely_probability": Figure(
        "Weight of unlikely demonstrated tokens without shaping", section="Learning"
    ),
}


class Options(Settings):
    """Mixed policy."""

    gamma: float = Field(0.1, gt=0, le=10)
    """Probability at which a token of a demonstration weighs most; a large one is no shaping."""
    clip: bool = False
    """Clip the ratios of the policy's own answers by `loss.clip_low` and `clip_high`, as ppo."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses a dual clip without `clip`; warns of a clip that can never act."""
    clips = config.loss.options("policy").clip
    if config.loss.dual_clip is not None and not clips:
        reason = (
            "has no effect with loss.mixed_policy.clip = false; leave it unset, or set that to true"
        )
        yield Misfit("loss.dual_clip", config.loss.dual_clip, reason)
    if clips and config.training.minibatches == 1:
        reason = (
            "with one optimizer step per batch (training.minibatches = 1) every ratio is 1, and "
            "nothing is ever clipped; set training.minibatches to 2 or more, or this to false"
        )
        yield Misfit("loss.mixed_policy.clip", True, reason, refused=False)


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token; figures are means over tokens of demonstrations, the last
    two with 0 for likely ones."""
    mask_NL, advantages_NL, options = context.mask_NL, context.advantages_NL, context.options
    ratios_NL = token_ratios(context.logprobs_NL, context.old_logprobs_NL, mask_NL)
    own = LossTerms(-ratios_NL * advantages_NL)
    if options.clip:
        own = clipped_surrogate(ratios_NL, advantages_NL, context.config)
    probabilities_NL = context.logprobs_NL.where(mask_NL.bool(), 0.0).clamp(max=0.0).exp()
    figures = _figures(probabilities_NL.detach(), context)
    if (shown_N := context.demonstrations_N) is None:
        return LossTerms(own.per_token_NL, own.clipped_NL, figures)
    shown_N1 = shown_N[:, None]
    shaped_NL = probabilities_NL / (probabilities_NL + options.gamma)
    per_token_NL = (-shaped_NL * advantages_NL).where(shown_N1, own.per_token_NL)
    clipped_NL = None if own.clipped_NL is None else own.clipped_NL & ~shown_N1
    return LossTerms(per_token_NL, clipped_NL, figures)


def _figures(probabilities_NL: Tensor, context: LossContext) -> dict[str, Tensor]:
    gamma, units = context.options.gamma, context.units
    weights_NL = gamma * probabilities_NL / (probabilities_NL + gamma) ** 2
    unlikely_NL = probabilities_NL < UNLIKELY
    values = {
        "shown_probability": probabilities_NL,
        "unlikely_weight": weights_NL * unlikely_NL,
        "unlikely_probability": probabilities_NL * unlikely_NL,
    }
    # An update reports means over all its tokens: scaled, they are those of demonstrations.
    scale = units.tokens / max(1, units.demonstrated)
    shown_N = context.demonstrations_N
    return {
        name: values_NL * 0.0 if shown_N is None else (values_NL * scale * shown_N[:, None])
        for name, values_NL in values.items()
    }
