"""Mean length of right and of wrong answers, smoothed over steps."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings
from engine.config.methods import Figure
from engine.evaluation.gauges.gauge import GaugeContext, Numbers, StepEvents

FIGURES = {
    "tokens": Figure("Length of right and of wrong answers", unit="tokens", section="Learning")
}


class Options(Settings):
    """Mean length of right and of wrong answers."""

    decay: float = Field(0.8, ge=0, lt=1)
    """Weight of the earlier steps."""


def state(options: Options) -> dict[str, float]:
    """Returns no means yet."""
    return {}


def numbers(step: StepEvents, context: GaugeContext) -> Numbers:
    """Returns the smoothed means, in tokens."""
    means, decay = context.state, context.options.decay
    closed = [node.closed for tree in step.trees for node in tree.nodes]
    for name, right in (("right", True), ("wrong", False)):
        scored = [one for one in closed if one.score is not None]
        lengths = [one.tokens for one in scored if (one.score == 1) is right]
        if lengths:
            mean = sum(lengths) / len(lengths)
            means[name] = decay * means.get(name, mean) + (1 - decay) * mean
    return {"tokens": dict(means)}
