"""What is asked of the agents one by one, and comes back as it ends.

Every actor that writes is kept in turns: a turn takes along what was asked for since the last one,
which joins the actor's running batch, and brings back what has ended. The next turn is sent before
what came back is looked at, so that nobody's batch waits for the loop.

Where writing and verifying share cores, a turn waits while verdicts are near that will have more
asked for than there is to write: a batch of few answers costs almost as much as one of many.

Invariant: whatever was asked for is in exactly one place, waiting or with one actor, until its
answer is taken; an actor has at most one turn under way.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from engine.policy.handles import PolicyHandle
from engine.policy.types import Answer, Request
from engine.training.team import Team

TURN_SECONDS = 0.25
"""Longest turn in which nothing ends: so long may a request wait to join."""


class GenerationDispatcher:
    """All answers that are under way, by number."""

    def __init__(self, team: Team):
        self.team = team
        self._numbers = itertools.count()
        self._waiting: dict[PolicyHandle, dict[int, tuple[str, Request]]] = {}
        self._loads: Counter[PolicyHandle] = Counter()
        """Answers that are wanted of each actor."""
        self._turns: dict[Any, PolicyHandle] = {}
        """The actor of each call that is under way."""

    @property
    def turns(self) -> list[Any]:
        """Calls under way; one that has ended is given to `taken`."""
        return list(self._turns)

    def ask(self, agent: str, request: Request) -> int:
        """Want an answer of whoever writes for an agent and has least to do; its number."""
        number = next(self._numbers)
        actor = min(self.team.generators[agent], key=lambda actor: self._loads[actor])
        self._loads[actor] += 1
        self._waiting.setdefault(actor, {})[number] = (agent, request)
        return number

    def send(self, urgent: Collection[int] = (), coming: int = 0) -> None:
        """Start a turn of everyone who is in none and has something to do, and not less than his
        share of what is `coming`; a turn brings what is `urgent` back soon."""
        busy, share = set(self._turns.values()), coming / max(1, len(self._loads))
        due = [a for a, load in self._loads.items() if load >= max(1, share) and a not in busy]
        for actor in due:
            asked = self._waiting.pop(actor, {})
            self._turns[actor.write.remote(asked, TURN_SECONDS, urgent)] = actor

    def taken(self, ended: Iterable[Any]) -> dict[int, Answer]:
        """The answers of turns that have ended, by number; `send` has their actors go on.

        Raises:
            TeamError: an actor failed, with its first cause.
        """
        turns = list(ended)
        found: dict[int, Answer] = {}
        for turn, answers in zip(turns, self.team.get(turns, "agents to write"), strict=True):
            self._loads[self._turns.pop(turn)] -= len(answers)
            found |= answers
        return found
