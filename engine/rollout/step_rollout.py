"""Rollout of a training step: its trees, from the next problems in order.

Invariant: problems are taken as the run's sampler draws them; those whose trees an interruption cut
off come first. Trees grow in waves, step by step, or continuously (`is_continuous`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.config.agents import GeneratorName
from engine.config.schema import RunConfig
from engine.credit.filters import usable
from engine.memory.memories import Memories
from engine.problems.source import ProblemSet
from engine.rollout.admission import Flow
from engine.rollout.continuous import ContinuousRollout, Membership
from engine.rollout.forest import GrowingTree
from engine.rollout.planting import Planting
from engine.rollout.recorder import TreeRecorder
from engine.rollout.types import RolloutTeam
from engine.rollout.waves import Rollout


def is_continuous(config: RunConfig) -> bool:
    """Whether trees grow continuously: answers are verified, and successors join the running
    batch, without waves.

    True where trees outlast their step; where vLLM generates, whose batch is always open; where a
    generator runs alongside the learner (`training.overlap`) and would idle while programs are
    verified; and where no request follows an answer, as in flat groups, so that no batch shrinks.
    Otherwise the torch generator on few cores gains less from an open batch than its smaller
    batches and more calls cost: the demo's steps took a third longer.
    """
    if config.compute.deterministic:
        return False
    written_by = {agent.generator.name for agent in config.agents}
    return (
        config.training.extra_trees > 0
        or config.training.overlap
        or GeneratorName.VLLM in written_by
        or config.search.nodes_in_flight == config.search.nodes_per_tree
    )


@dataclass
class _StepInProgress:
    """The step whose trees grow, and its current round of refilling."""

    step: int
    seen: int
    """Number of problems begun before the step."""
    recorder: TreeRecorder
    phases: dict[str, float]
    update: Sequence[Any]
    """Calls of the update that runs alongside."""
    missing: int = 0
    """Number of usable trees that the step lacks."""
    refill: int = 0
    """Index of the round."""
    is_planted: bool = False
    trees: list[GrowingTree] = field(default_factory=list)
    """Complete trees of the step, filtered ones included."""


class StepRollout:
    """Grows the trees that each step learns from."""

    def __init__(
        self,
        config: RunConfig,
        team: RolloutTeam,
        problems: ProblemSet,
        should_stop: Callable[[], bool],
        memories: Memories,
    ):
        """`memories` are the run's (`engine.rollout.memories`)."""
        self.config = config
        self.team = team
        self.should_stop = should_stop
        self.planting = Planting(config, problems, memories)
        self.growth = ContinuousRollout(config, team, self.planting, should_stop)
        self.admission = self.growth.admission
        self.interrupted: list[int] = []
        """Numbers of problems whose trees an interruption cut off; begun again first."""
        self.begun = 0
        """Number of new problems of this step."""
        self.refilled = 0
        """Number of trees that replaced filtered ones."""
        self._opened = 0
        self._settled = True
        """Whether this step begins no more problems, and carries no tree over to the next."""

    @property
    def carried(self) -> list[int]:
        """Numbers of problems whose trees are in flight, without those of the next step."""
        carried = self.growth.members(Membership.CURRENT, Membership.CARRIED)
        return [*(one.tree.number for one in carried), *self.interrupted]

    def begin(
        self,
        step: int,
        seen: int,
        recorder: TreeRecorder,
        phases: dict[str, float],
        update: Sequence[Any] = (),
    ) -> None:
        """Begins a step, before which `seen` problems were begun; `update` are the calls of an
        update that runs alongside."""
        self.begun = self._opened = self.refilled = 0
        self._round = _StepInProgress(step, seen, recorder, phases, update)
        self._round.missing = self.config.training.trees_per_step

    def start(self) -> None:
        """Begins the trees of the current round, unless they have begun; `grow` does so too. Only
        where trees grow continuously."""
        one = self._round
        last = one.refill == self.config.credit.refill_rounds
        self._settled = last and not self.config.training.extra_trees
        if not one.is_planted:
            one.is_planted = True
            self._plant(one)

    def grow(self) -> list[GrowingTree] | None:
        """Returns the trees of the step; filtered trees are replaced while refill rounds are left.
        Returns None as soon as the update alongside has ended, if that is before the trees are
        complete; is then to be called again.

        Raises:
            Stopped: a stop was requested.
            TeamError: an actor failed, or no call ended within the deadline.
        """
        one = self._round
        rounds = self.config.credit.refill_rounds
        while one.missing and one.refill <= rounds:
            trees = self._gather(one) if is_continuous(self.config) else self._in_waves(one)
            if trees is None:
                return None
            one.trees += trees
            usable_trees = sum(usable(tree.scores(), self.config.credit) for tree in one.trees)
            one.missing = max(0, self.config.training.trees_per_step - usable_trees)
            one.refill, one.is_planted = one.refill + 1, False
            self.refilled += one.missing if one.refill <= rounds else 0
        self._settled = True
        return one.trees

    def begin_ahead(self, step: int, seen: int) -> None:
        """Plants the next step's trees before it begins, if their problems are known already;
        `seen` problems were begun before that step."""
        if self._settled and not self.interrupted and not self.growth.members(Membership.AHEAD):
            training = self.config.training
            # Without extra trees, all trees in flight belong to the current step.
            left = len(self.growth.in_flight) if training.extra_trees else 0
            count = self.admission.room(Flow(training.trees_per_step, left))
            self.growth.plant(self.planting.drawn(seen, count), step, 0, refill=False)

    def discard_ahead(self) -> None:
        """Discards the trees planted for the next step."""
        self.growth.discard_ahead()

    def _in_waves(self, one: _StepInProgress) -> list[GrowingTree]:
        """Grows and returns the missing trees in waves, of the next problems."""
        numbers = self.planting.drawn(one.seen + self.begun, one.missing)
        forest = self.planting.forest(numbers, one.step, self.begun, one.refill > 0)
        self.begun += one.missing
        one.recorder.open_trees(forest.trees)
        rollout = Rollout(self.team, forest, one.recorder, self.should_stop)
        rollout.run()
        for name, seconds in rollout.seconds.items():
            one.phases[name] = one.phases.get(name, 0.0) + seconds
        return forest.trees

    def _gather(self, one: _StepInProgress) -> list[GrowingTree] | None:
        """Returns at least as many complete trees as are missing; `extra_trees` more grow alongside
        them. Returns None if the update has ended before."""
        self.start()
        return self.growth.gather(one.missing, one.recorder, one.phases)

    def _plant(self, one: _StepInProgress) -> None:
        """Plants the trees of a round, unless they were planted ahead, and begins them."""
        first = one.seen + self.begun
        trees = [entry.tree for entry in self.growth.members(Membership.AHEAD)]
        self.begun += len(trees)
        if not trees:
            missing = self._to_plant(one.missing)
            interrupted, self.interrupted = self.interrupted[:missing], self.interrupted[missing:]
            new = self.planting.drawn(first, missing - len(interrupted))
            numbers = [*interrupted, *new]
            trees = self.growth.plant(numbers, one.step, self._opened, one.refill > 0)
            self.begun += len(new)
        one.recorder.open_trees(trees)
        self._opened += len(trees)
        self.planting.prepare(first + len(trees), one.missing)
        for phase in ("generate", "verify"):
            one.phases.setdefault(phase, 0.0)
        self.growth.begin_step(one.recorder, one.update)

    def _to_plant(self, count: int) -> int:
        """Returns how many trees to plant for `count` complete ones."""
        return self.admission.room(Flow(count, len(self.growth.in_flight)))
