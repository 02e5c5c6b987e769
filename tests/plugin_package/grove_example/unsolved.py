"""Goes round the problems that no tree has solved, or all of them if none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.config.training import TrainingConfig
from engine.memory.protocol import OnFork, SeenTree


def sampler(problems: int, seed: int, training: TrainingConfig) -> Unsolved:
    """Returns the sampler of a run."""
    return Unsolved(problems)


class Unsolved:
    """Remembers which problems were solved."""

    on_fork = OnFork.SAME_PROBLEMS

    def __init__(self, problems: int):
        self.problems = problems
        self.solved: set[int] = set()

    def next(self, position: int) -> int:
        unsolved = [number for number in range(self.problems) if number not in self.solved]
        numbers = unsolved or list(range(self.problems))
        return numbers[position % len(numbers)]

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        self.solved |= {tree.problem for tree in trees if 1.0 in tree.scores}

    def state(self) -> dict[str, Any]:
        return {"solved": sorted(self.solved)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.solved = set(state["solved"])
