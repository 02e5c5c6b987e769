"""Episodes of several turns: what ends one, and the turns that follow outside of a tree."""

from __future__ import annotations

from dataclasses import replace

from engine.environments.types import Settled
from engine.events.states import Verdict
from engine.policy.types import Request
from engine.rollout.scheduler import Task, VerifiedTask


def truncated(settled: Settled, turns: int) -> Settled:
    """Returns a turn after which an episode goes on as its last one: it has the worth of then."""
    error = f"search.turns_per_episode = {turns} turns are over"
    return Settled(replace(settled.outcome, verdict=Verdict.TRUNCATED, error=error))


def next_turn(done: VerifiedTask, turns: int) -> Task | None:
    """Returns the task of the turn that follows an answer of an episode that is no tree's; None
    where the episode is over, or has had so many turns."""
    if not done.settled.goes_on or done.task.turn >= turns:
        return None
    request = Request(done.task.request.task, done.settled.observation)
    return replace(done.task, request=request, turn=done.task.turn + 1)
