"""Order of the training split itself: from first to last, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.config.training import TrainingConfig
from engine.memory.protocol import OnFork, SeenTree


def sampler(problems: int, seed: int, training: TrainingConfig) -> Order:
    """Returns the sampler of a run."""
    return Order(problems)


class Order:
    """Remembers nothing: a position says it all."""

    on_fork = OnFork.SAME_PROBLEMS

    def __init__(self, problems: int):
        self._problems = problems

    def next(self, position: int) -> int:
        return position % self._problems

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Has nothing to take in."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Has nothing to restore."""
