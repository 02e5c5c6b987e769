"""Dispatcher of single generation requests to actors; answers return as they complete.

Every generating actor is called in turns: a turn carries the requests made since the last one,
which join the actor's running batch, and returns the answers that have completed. The next turn is
sent before the returned answers are processed, so that no actor's batch waits for the loop.

Where generation and verification share cores, a turn is delayed while verdicts are near that will
issue more requests than there are to write: a batch of few answers costs almost as much as one of
many.

Invariant: every request is either pending or with exactly one actor until its answer is taken; an
actor has at most one turn in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from engine.policy.handles import PolicyHandle
from engine.policy.types import Answer, Request
from engine.rollout.scheduler import Demand, Task
from engine.rollout.types import RolloutTeam
from engine.run.spans import submitted

TURN_SECONDS = 0.25
"""Longest turn in which no answer completes, and so the longest wait of a request to join."""


class GenerationDispatcher:
    """Requests in flight, by number, and the turns of the actors that serve them: the
    `AnswerSource` of a continuous rollout."""

    def __init__(self, team: RolloutTeam):
        self.team = team
        self._waiting: dict[PolicyHandle, dict[int, tuple[str, Request]]] = {}
        self._loads: Counter[PolicyHandle] = Counter()
        """Answers that each actor owes."""
        self._turns: dict[Any, PolicyHandle] = {}
        """The actor of each call in flight."""

    @property
    def calls(self) -> list[Any]:
        """Turns in flight; pass those that have ended to `take`."""
        return list(self._turns)

    def submit(self, number: int, task: Task) -> None:
        """Queues a request with the agent's least loaded generating actor."""
        actor = min(self.team.generators[task.agent], key=lambda actor: self._loads[actor])
        self._loads[actor] += 1
        self._waiting.setdefault(actor, {})[number] = (task.agent, task.request)

    def send(self, demand: Demand) -> None:
        """Starts a turn of every idle actor that owes answers, at least as many as its share of the
        `coming` requests; a turn returns `urgent` answers soon."""
        busy = set(self._turns.values())
        share = demand.coming / max(1, len(self._loads))
        due = [a for a, load in self._loads.items() if load >= max(1, share) and a not in busy]
        for actor in due:
            requests = self._waiting.pop(actor, {})
            turn = actor.write.remote(requests, TURN_SECONDS, demand.urgent)
            self._turns[submitted(turn, "generate", "write", answers=self._loads[actor])] = actor

    def take(self, ended: Collection[Any]) -> dict[int, Answer]:
        """Returns the answers of ended turns, by number; `send` starts their actors' next turns.

        Raises:
            TeamError: an actor failed, with its first cause.
        """
        turns = [turn for turn in self._turns if turn in ended]
        by_number: dict[int, Answer] = {}
        for turn, answers in zip(turns, self.team.get(turns, "agents to write"), strict=True):
            self._loads[self._turns.pop(turn)] -= len(answers)
            by_number |= answers
        return by_number
