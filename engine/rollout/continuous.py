"""Continuous rollout: trees grow without waves, and neither agents nor sandbox wait for a batch.

An answer is verified as soon as it completes, and its verdict opens the next expansions of its
tree, which join the running batch of their agent. A step takes the complete trees as soon as there
are enough; the others are carried over to the next step (`training.extra_trees`). The trees of a
step may be planted while those of the previous step still grow; each begins as one of these
completes, so that the number of growing trees stays the same. Their events are buffered until
their step begins.

    plant ──► QUEUED ──── another tree completes ────► GROWING ──── its last node closes ──► WHOLE
              waits for   or its step begins           its nodes are IN_FLIGHT or PENDING     │
              a tree                                   in the `Scheduler`        gather takes it

    AHEAD ──── `begin_step` ────► CURRENT ──── its step ends without it ────► CARRIED
    buffers its events                          the step waits for enough of them, of either step

`gather` waits for the scheduler, and the scheduler for the next turn of an agent, the next piece of
verification, or an update of the learners alongside, whichever ends first. It returns early once
that update has ended: its caller sends the weights, may plant the next step's trees, and calls it
again.

Invariants:
- A tree is in flight until it is returned complete, and is returned once.
- An answer's tokens are a function of its tree's seed and its node; the order in which nodes close
  depends on the clock. `compute.deterministic` and the other settings for which
  `step_rollout.is_continuous` is false therefore grow trees in waves (`waves.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.config.schema import RunConfig
from engine.rollout.admission import Admission, Flow
from engine.rollout.forest import ClosedNode, Forest, GrowingTree, OpenNode
from engine.rollout.generation_dispatcher import GenerationDispatcher
from engine.rollout.growth import task_of
from engine.rollout.planting import Planting
from engine.rollout.scheduler import Demand, Order, Scheduler, Task, VerifiedTask
from engine.rollout.types import RolloutSink, RolloutTeam, Stopped


class Growth(StrEnum):
    """How far a tree in flight has grown."""

    QUEUED = "queued"
    """No node is open: it waits for another tree to complete, or for its step."""
    GROWING = "growing"
    WHOLE = "whole"
    """Nothing is left to open and nothing is in flight; the next `gather` of its step takes it."""


class Membership(StrEnum):
    """Which step a tree in flight belongs to."""

    AHEAD = "ahead"
    """The next step, which has not begun: its events are buffered."""
    CURRENT = "current"
    CARRIED = "carried"
    """An earlier step, which ended without it; the current step takes it like its own."""


@dataclass(eq=False)
class TreeInFlight:
    """A tree that no step has taken."""

    tree: GrowingTree
    forest: Forest
    growth: Growth = Growth.QUEUED
    membership: Membership = Membership.AHEAD
    completion: int = -1
    """Index among all trees in the order in which they became whole."""


class ContinuousRollout:
    """All trees in flight: generation, verification and growth without barriers."""

    def __init__(
        self,
        config: RunConfig,
        team: RolloutTeam,
        planting: Planting,
        should_stop: Callable[[], bool],
    ):
        self.config = config
        self.team = team
        self.admission = Admission.of(config.training)
        self.planting = planting
        self.should_stop = should_stop
        self.in_flight: dict[GrowingTree, TreeInFlight] = {}
        """Trees that no step has taken, in the order in which they were planted."""
        self.scheduler = Scheduler(
            Order.CONTINUOUS, GenerationDispatcher(team), team.verifier, team.wait, self._demand
        )
        self._buffered: list[tuple[GrowingTree, OpenNode | ClosedNode]] = []
        """Nodes opened and closed in trees whose step has not begun, in order, not yet reported."""
        self._completions = itertools.count()

    def members(self, *memberships: Membership) -> list[TreeInFlight]:
        """Returns the trees in flight of these memberships."""
        return [one for one in self.in_flight.values() if one.membership in memberships]

    def plant(
        self, numbers: Sequence[int], step: int, first: int, refill: bool
    ) -> list[GrowingTree]:
        """Returns new trees of the problems of these numbers; `first` is the number of trees that
        this step opened before, `refill` whether they replace filtered ones. They begin as others
        complete; the next `gather` begins the rest, and their step."""
        growing = sum(one.growth is Growth.GROWING for one in self.in_flight.values())
        forest = self.planting.forest(numbers, step, first, refill)
        for tree in forest.trees:
            self.in_flight[tree] = TreeInFlight(tree, forest)
        self._begin(len(forest.trees) - growing)
        return forest.trees

    def discard_ahead(self) -> None:
        """Discards the trees whose step has not begun; answers in flight for them are ignored."""
        discarded = {one.tree for one in self.members(Membership.AHEAD)}
        for tree in discarded:
            del self.in_flight[tree]
        self._buffered.clear()
        self.scheduler.discard(lambda task: task.mark.tree in discarded)

    def begin_step(self, sink: RolloutSink, update: Sequence[Any] = ()) -> None:
        """Begins the step of the trees that are AHEAD, alongside the calls of an update: reports
        their nodes so far, and begins those that are still QUEUED."""
        self._begin(len(self.in_flight))
        for one in self.members(Membership.AHEAD):
            one.membership = Membership.CURRENT
        buffered, self._buffered = self._buffered, []
        for tree, node in buffered:
            self._report(tree, node, sink)
        self.scheduler.alongside = list(update)

    def gather(
        self, count: int, sink: RolloutSink, phases: dict[str, float]
    ) -> list[GrowingTree] | None:
        """Grows trees until `count` are complete, and returns all complete ones; trees planted
        meanwhile belong to a later step. Returns None as soon as the update alongside has ended,
        if that is earlier; is then to be called again.

        Raises:
            Stopped: a stop was requested.
            TeamError: an actor failed, or no call ended within the deadline.
        """
        while not self._enough(count, whole := self._whole()):
            if self.should_stop():
                raise Stopped
            updating = bool(self.scheduler.alongside)
            self._advance(sink, phases)
            if updating and not self.scheduler.alongside:
                return None
        for one in whole:
            del self.in_flight[one.tree]
        for one in self._mine():
            one.membership = Membership.CARRIED
        return [one.tree for one in whole]

    def attend(self, calls: Sequence[Any], name: str, sink: RolloutSink) -> None:
        """Keeps trees that no step waits for growing until these calls have ended, or nothing is
        in flight any more; a long wait is reported as `name`."""
        self.scheduler.alongside = list(calls)
        while self.scheduler.alongside and not self.scheduler.is_idle:
            self._advance(sink, {}, name)

    def _enough(self, count: int, whole: Sequence[TreeInFlight]) -> bool:
        return self.admission.enough(Flow(count, len(self._mine()), len(whole)))

    def _mine(self) -> list[TreeInFlight]:
        """The trees that the current step may take."""
        return self.members(Membership.CURRENT, Membership.CARRIED)

    def _whole(self) -> list[TreeInFlight]:
        """The complete trees of the current step, in the order of their completion."""
        whole = [one for one in self._mine() if one.growth is Growth.WHOLE]
        return sorted(whole, key=lambda one: one.completion)

    def _begin(self, count: int) -> None:
        """Begins up to `count` of the queued trees."""
        queued = [one for one in self.in_flight.values() if one.growth is Growth.QUEUED]
        if beginning := queued[: max(0, count)]:
            for one in beginning:
                one.growth = Growth.GROWING
            self._buffered += [(claim.tree, claim) for claim in self._open(beginning)]

    def _open(self, growing: Iterable[TreeInFlight]) -> list[OpenNode]:
        """Opens the nodes that the budgets of these trees allow now, and requests their answers."""
        claims = [claim for one in growing for claim in one.forest.claim([one.tree])]
        self.scheduler.submit(map(task_of, claims))
        return claims

    def _advance(self, sink: RolloutSink, phases: dict[str, float], name: str = "") -> None:
        """Closes the nodes that are verified next, and opens those that follow from them."""
        grown: dict[GrowingTree, TreeInFlight] = {}
        for done in self._verified(phases, name):
            claim: OpenNode = done.task.mark
            one = grown[claim.tree] = self.in_flight[claim.tree]
            for node in one.forest.close(claim, done.answer, done.settled):
                self._report(claim.tree, node, sink)
        for claim in self._open(grown.values()):
            self._report(claim.tree, claim, sink)
        whole = [one for one in grown.values() if one.forest.is_spent(one.tree)]
        for one in whole:
            one.growth, one.completion = Growth.WHOLE, next(self._completions)
        self._begin(len(whole))

    def _verified(self, phases: dict[str, float], name: str) -> list[VerifiedTask]:
        return self.scheduler.advance(phases, name)

    def _report(self, tree: GrowingTree, node: OpenNode | ClosedNode, sink: RolloutSink) -> None:
        if self.in_flight[tree].membership is Membership.AHEAD:
            self._buffered.append((tree, node))
        elif isinstance(node, OpenNode):
            sink.opened(node)
        else:
            sink.closed(tree, node)

    def _demand(self) -> Demand:
        return Demand(self._urgent(), self._coming())

    def _urgent(self) -> list[int]:
        """Requests of the current step; empty unless trees of a later step are in flight too."""
        if not self.members(Membership.AHEAD):
            return []
        requests = self.scheduler.in_flight.items()
        return [number for number, task in requests if not self._is_ahead(task)]

    def _is_ahead(self, task: Task) -> bool:
        return self.in_flight[task.mark.tree].membership is Membership.AHEAD

    def _coming(self) -> int:
        """Number of nodes in verification whose verdicts will issue more requests; 0 where to wait
        for them saves nothing: on GPUs, or while no learner needs the cores."""
        if self.team.on_gpus or not self.scheduler.alongside:
            return 0
        pending = [self.in_flight[task.mark.tree] for task, _ in self.scheduler.pending.values()]
        return sum(one.forest.end(one.tree) is None for one in pending)
