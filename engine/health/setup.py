"""Settings of a run that rules need to judge its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.config.schema import RunConfig


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
            clips=config.training.minibatches > 1 and config.loss.clips,
            shapes=config.credit.shaping_gamma > 0,
            gradient_limits=limits,
        )
