"""What is asked of the agents one by one, and comes back as it ends.

Every actor that writes is kept in turns: a turn takes along what was asked for since the last one,
which joins the actor's running batch, and brings back what has ended. The next turn is sent before
what came back is looked at, so that nobody's batch waits for the loop.

Invariant: whatever was asked for is in exactly one place, waiting or with one actor, until its
answer is taken; an actor has at most one turn under way.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from engine.policy.exchange import Answer, Request
from engine.training.team import Team

TURN_SECONDS = 0.25
"""Longest turn in which nothing ends: so long may a request wait to join."""


class Writing:
    """All answers that are under way, by number."""

    def __init__(self, team: Team):
        self.team = team
        self._numbers = itertools.count()
        self._waiting: dict[Any, dict[int, tuple[str, Request]]] = {}
        self._loads: Counter[Any] = Counter()
        """Answers that are wanted of each actor."""
        self._turns: dict[Any, Any] = {}
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

    def send(self, urgent: Collection[int] = ()) -> None:
        """Start a turn of everyone who has something to do and is in none; a turn brings what is
        `urgent` back soon."""
        busy = set(self._turns.values())
        for actor in [actor for actor, load in self._loads.items() if load and actor not in busy]:
            asked = self._waiting.pop(actor, {})
            self._turns[actor.write.remote(asked, TURN_SECONDS, urgent)] = actor

    def taken(self, ended: Iterable[Any], urgent: Collection[int] = ()) -> dict[int, Answer]:
        """The answers of turns that have ended, by number; their actors go on with the next.

        Raises:
            TeamError: an actor failed, with its first cause.
        """
        turns = list(ended)
        found: dict[int, Answer] = {}
        for turn, answers in zip(turns, self.team.get(turns, "agents to write"), strict=True):
            self._loads[self._turns.pop(turn)] -= len(answers)
            found |= answers
        self.send(urgent)
        return found
