"""How far a run has come. Invariant: it changes only when a whole step is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from engine.config.training import TrainingConfig


@dataclass
class Progress:
    """Saved with every checkpoint."""

    step: int = 0
    problems_seen: int = 0
    """Position in the training problems."""
    training_seconds: float = 0.0
    """Of steps, validation left out."""

    carried: list[int] = field(default_factory=list)
    """Positions of problems whose trees were under way when the step ended."""

    def finish_step(
        self, step: int, problems: int, seconds: float, carried: Sequence[int] = ()
    ) -> None:
        self.step = step
        self.carried = list(carried)
        self.problems_seen += problems
        self.training_seconds += seconds

    def share(self, plan: TrainingConfig) -> float:
        """Share of the run that is done, 0 to 1: by steps or by minutes, whichever is ahead."""
        by_steps = self.step / plan.steps
        by_time = self.training_seconds / (60 * plan.minutes) if plan.minutes else 0.0
        return min(1.0, max(by_steps, by_time))

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        return cls(**state)
