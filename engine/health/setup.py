"""Settings of a run that rules need to judge its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.config.loss import LossConfig
from engine.config.schema import RunConfig

CLIPPING = frozenset({"cispo", "gspo", "ppo"})
"""Policy losses that clip a ratio of policies, or the weight made of it."""
NO_LIMIT = 1.0
"""A clip range of this width or more hardly ever clips: it is switched off."""


@dataclass(frozen=True)
class Setup:
    """What the events do not say; the defaults suit a log whose settings are unknown."""

    clips: bool = False
    """Whether some update can clip: several optimizer steps per batch, and a loss that clips."""
    shapes: bool = False
    """Whether rewards are shaped (`credit.shaping_gamma` above 0)."""
    gradient_limits: dict[str, float] = field(default_factory=dict)
    """Gradient norm above which an agent's gradient is scaled down."""

    @classmethod
    def of(cls, config: RunConfig) -> Setup:
        limits = {agent.name: agent.optimizer.max_gradient_norm for agent in config.agents}
        return cls(
            clips=config.training.minibatches > 1 and _clips(config.loss),
            shapes=config.credit.shaping_gamma > 0,
            gradient_limits=limits,
        )


def _clips(loss: LossConfig) -> bool:
    return loss.policy in CLIPPING and min(loss.clip_low, loss.clip_high) < NO_LIMIT
