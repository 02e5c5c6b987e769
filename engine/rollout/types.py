"""Types between a rollout and its callers. Invariant: importing them loads no Ray and no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from engine.config.schema import RunConfig
from engine.environments.types import Outcome
from engine.policy.handles import PolicyHandle
from engine.policy.types import Answer, AnswerCall
from engine.problems.problem import Problem
from engine.rollout.forest import ClosedNode, GrowingTree, OpenNode

if TYPE_CHECKING:  # loads Ray
    from engine.rollout.verification import VerifierPool
    from engine.run.waits import Waiting

Judged = tuple[Answer, Outcome]
"""An answer and what came of it, such as the verdict on its program."""

Program = tuple[Problem, str]
"""A program and the problem that it is to solve."""


class Stopped(Exception):
    """A stop of the run was requested in the middle of a step."""


class RolloutSink(Protocol):
    """Receives the nodes that open and close as trees grow."""

    def opened(self, claim: OpenNode) -> None: ...

    def closed(self, tree: GrowingTree, node: ClosedNode) -> None: ...


@dataclass(frozen=True)
class AnswerBatch:
    """Calls in flight, each with the indices of the requests that it serves, by agent."""

    calls: list[tuple[Any, dict[str, list[int]]]]

    @property
    def futures(self) -> list[Any]:
        return [future for future, _ in self.calls]

    def merged(self, results: Sequence[Mapping[str, list[Answer]]]) -> dict[str, list[Answer]]:
        """Returns every agent's answers in the order of its requests."""
        by_agent: dict[str, dict[int, Answer]] = {}
        for (_, parts), answers in zip(self.calls, results, strict=True):
            for name, positions in parts.items():
                by_agent.setdefault(name, {}).update(zip(positions, answers[name], strict=True))
        return {
            name: [by_index[i] for i in sorted(by_index)] for name, by_index in by_agent.items()
        }


class RolloutTeam(Protocol):
    """The part of a team (`engine.training.team.Team`) that a rollout needs."""

    config: RunConfig
    agents: dict[str, PolicyHandle]
    generators: dict[str, list[PolicyHandle]]
    """Actors that generate for each agent in training."""
    verifier: VerifierPool
    waiting: Waiting

    @property
    def on_gpus(self) -> bool:
        """Whether any actor holds a GPU."""
        ...

    def answer(self, call: AnswerCall) -> AnswerBatch:
        """Requests an answer to every request of every agent."""
        ...

    def get(self, futures: Any, name: str) -> Any:
        """Returns the results of calls; raises TeamError with the first cause of a failure."""
        ...

    def wait(self, calls: Sequence[Any], name: str) -> list[Any]:
        """Returns those of several calls that have ended, at least one; reports a long wait."""
        ...
