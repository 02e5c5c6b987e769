"""Pass rates: how often each problem was solved at the first attempt, at its last visit.

Source: Knapsack RL, arXiv 2509.25849, whose rates are those of the epoch before. Ours: attempts are
the children of the root, for a repair answers another prompt; of all agents; a program is right if
its raw score is 1. Trees of one problem in one step are one visit. A visit without any scored
attempt changes nothing. A problem that was never visited has the mean rate of those that were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.memory.protocol import OnFork, SeenTree

UNKNOWN = 0.5
"""Rate of a problem while no problem has one."""


class PassRates:
    """Memory of the pass rates, by the number of the problem in the training split."""

    on_fork = OnFork.SAME_PROBLEMS

    def __init__(self) -> None:
        self.steps = 0
        """Number of steps observed."""
        self._visits: dict[int, tuple[int, int]] = {}
        """Right and all attempts of the last visit."""

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Takes in the attempts of a step."""
        self.steps += 1
        visits: dict[int, tuple[int, int]] = {}
        for tree in trees:
            attempts = tree.attempts()
            right, tried = visits.get(tree.problem, (0, 0))
            right += sum(1 for score in attempts if score >= 1.0)
            visits[tree.problem] = right, tried + len(attempts)
        self._visits |= {problem: visit for problem, visit in visits.items() if visit[1]}

    def rates_of(self, problems: Sequence[int]) -> list[float]:
        """Returns the pass rate of each problem, 0 to 1."""
        known = [right / tried for right, tried in self._visits.values()]
        mean = sum(known) / len(known) if known else UNKNOWN
        rates = [self.visited(problem) for problem in problems]
        return [mean if rate is None else rate for rate in rates]

    def visited(self, problem: int) -> float | None:
        """Returns the pass rate of a problem at its last visit; None if it has none."""
        visit = self._visits.get(problem)
        return None if visit is None else visit[0] / visit[1]

    def state(self) -> dict[str, Any]:
        """Returns steps and visits."""
        visits = [[problem, *visit] for problem, visit in self._visits.items()]
        return {"steps": self.steps, "visits": visits}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces steps and visits."""
        self.steps = state["steps"]
        self._visits = {problem: (right, tried) for problem, right, tried in state["visits"]}
