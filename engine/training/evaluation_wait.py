"""Wait of an evaluation: reports what is evaluated, and how many of its programs are judged.

It replaces the shorter waits of the team, each of which is for one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.config.evaluation import EvaluationConfig
from engine.events.vocabulary import RunWaiting


@dataclass
class EvaluationWait:
    """Reports `name` with `done` of `total` programs whenever a call of the team takes long."""

    report: Callable[[RunWaiting], object]
    name: str
    total: int
    done: int = 0
    is_reported: bool = False

    def waiting(self, name: str, deadline: float) -> None:
        """Replaces the team's own report (`engine.run.waits.Waiting`)."""
        self.begin()

    def begin(self) -> None:
        self.is_reported = True
        self.report(RunWaiting(self.name, done=min(self.done, self.total), total=self.total))

    def add(self, programs: int) -> None:
        """Counts `programs` more as judged."""
        self.done += programs

    def end(self) -> None:
        if self.is_reported:
            self.report(RunWaiting(""))


def program_count(options: EvaluationConfig, agents: int, problems: int, search: bool) -> int:
    """Returns how many programs an evaluation judges: of every agent alone and, with `search`, of
    the trees and of as many independent samples, divided among the agents and rounded up."""
    each = options.samples_per_problem * agents
    if search:
        each += options.tree_nodes + -(-options.tree_nodes // agents) * agents
    return problems * each
