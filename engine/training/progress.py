"""Progress of a run. Invariant: it changes only when a whole step is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from engine.config.training import TrainingConfig


@dataclass
class Progress:
    """Progress counters, saved with every checkpoint."""

    step: int = 0
    problems_seen: int = 0
    """Number of training problems begun: the position of the next draw."""
    training_seconds: float = 0.0
    """Seconds of all steps, without validation."""

    carried: list[int] = field(default_factory=list)
    """Numbers of problems whose trees were in flight when the step ended."""

    def finish_step(
        self, step: int, problems: int, seconds: float, carried: Sequence[int] = ()
    ) -> None:
        self.step = step
        self.carried = list(carried)
        self.problems_seen += problems
        self.training_seconds += seconds

    def share(self, plan: TrainingConfig) -> float:
        """Returns the share of the run that is done, 0 to 1: of steps or minutes, the larger."""
        by_steps = self.step / plan.steps
        by_time = self.training_seconds / (60 * plan.minutes) if plan.minutes else 0.0
        return min(1.0, max(by_steps, by_time))

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        return cls(**state)
