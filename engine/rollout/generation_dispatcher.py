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

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from engine.policy.handles import PolicyHandle
from engine.policy.types import Answer, Request
from engine.rollout.types import RolloutTeam

TURN_SECONDS = 0.25
"""Longest turn in which no answer completes, and so the longest wait of a request to join."""


class GenerationDispatcher:
    """Requests in flight, by number, and the turns of the actors that serve them."""

    def __init__(self, team: RolloutTeam):
        self.team = team
        self._numbers = itertools.count()
        self._waiting: dict[PolicyHandle, dict[int, tuple[str, Request]]] = {}
        self._loads: Counter[PolicyHandle] = Counter()
        """Answers that each actor owes."""
        self._turns: dict[Any, PolicyHandle] = {}
        """The actor of each call in flight."""

    @property
    def turns(self) -> list[Any]:
        """Calls in flight; pass those that have ended to `taken`."""
        return list(self._turns)

    def ask(self, agent: str, request: Request) -> int:
        """Queues a request with the agent's least loaded generating actor; returns its number."""
        number = next(self._numbers)
        actor = min(self.team.generators[agent], key=lambda actor: self._loads[actor])
        self._loads[actor] += 1
        self._waiting.setdefault(actor, {})[number] = (agent, request)
        return number

    def send(self, urgent: Collection[int] = (), coming: int = 0) -> None:
        """Starts a turn of every idle actor that owes answers, at least as many as its share of the
        `coming` requests; a turn returns `urgent` answers soon."""
        busy, share = set(self._turns.values()), coming / max(1, len(self._loads))
        due = [a for a, load in self._loads.items() if load >= max(1, share) and a not in busy]
        for actor in due:
            asked = self._waiting.pop(actor, {})
            self._turns[actor.write.remote(asked, TURN_SECONDS, urgent)] = actor

    def taken(self, ended: Iterable[Any]) -> dict[int, Answer]:
        """Returns the answers of ended turns, by number; `send` starts their actors' next turns.

        Raises:
            TeamError: an actor failed, with its first cause.
        """
        turns = list(ended)
        found: dict[int, Answer] = {}
        for turn, answers in zip(turns, self.team.get(turns, "agents to write"), strict=True):
            self._loads[self._turns.pop(turn)] -= len(answers)
            found |= answers
        return found
