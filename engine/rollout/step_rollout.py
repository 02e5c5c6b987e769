"""Rollout of a training step: its trees, from the next problems in order.

Invariant: problems are taken in their order, each once; those whose trees an interruption cut off
come first. Trees grow in waves, step by step, or continuously (`grows_on`).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.config.agents import GeneratorName
from engine.config.schema import RunConfig
from engine.credit.filters import usable
from engine.problems.source import ProblemSet
from engine.rollout.continuous import ContinuousRollout, Membership, Then
from engine.rollout.forest import Forest, GrowingTree, training_score
from engine.rollout.recorder import TreeRecorder
from engine.rollout.types import RolloutTeam
from engine.rollout.waves import Rollout


def grows_on(config: RunConfig) -> bool:
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


class StepRollout:
    """Grows the trees that each step learns from."""

    def __init__(
        self,
        config: RunConfig,
        team: RolloutTeam,
        problems: ProblemSet,
        should_stop: Callable[[], bool],
    ):
        self.config = config
        self.team = team
        self.problems = problems
        self.should_stop = should_stop
        self.growth = ContinuousRollout(config, team, problems, should_stop)
        self.again: list[int] = []
        """Indices of problems whose trees an interruption cut off; begun again first."""
        self.begun = 0
        """Number of new problems of this step."""
        self.refilled = 0
        """Number of trees that replaced filtered ones."""
        self._opened = 0
        self._settled = True
        """Whether this step begins no more problems, and carries no tree over to the next."""

    @property
    def carried(self) -> list[int]:
        """Indices of problems whose trees are in flight, without those of the next step."""
        carried = self.growth.members(Membership.CURRENT, Membership.CARRIED)
        return [*(one.position for one in carried), *self.again]

    def grow(
        self, step: int, seen: int, recorder: TreeRecorder, phases: dict[str, float], then: Then
    ) -> list[GrowingTree]:
        """Returns the trees of a step; filtered trees are replaced while refill rounds are left.

        `seen` problems were begun before this step. `then` runs as soon as its calls have ended,
        if that is before the trees are complete.

        Raises:
            Stopped: a stop was requested.
            TeamError: an actor failed, or no call ended within the deadline.
        """
        self.begun = self._opened = self.refilled = 0
        trees: list[GrowingTree] = []
        missing = self.config.training.trees_per_step
        rounds = self.config.credit.refill_rounds
        for refill in range(1 + rounds):
            self.refilled += missing if refill else 0
            self._settled = refill == rounds and not self.config.training.extra_trees
            first = seen + self.begun
            if grows_on(self.config):
                trees += self._gather(missing, step, first, recorder, phases, then)
            else:
                trees += self._in_waves(missing, step, first, recorder, phases)
            kept = sum(usable(tree.scores(), self.config.credit) for tree in trees)
            missing = max(0, self.config.training.trees_per_step - kept)
            if missing == 0:
                break
        self._settled = True
        return trees

    def begin_ahead(self, step: int, seen: int) -> None:
        """Plants the next step's trees before `grow` is called for them, if their problems are
        already known; `seen` problems were begun before that step."""
        if self._settled and not self.again and not self.growth.members(Membership.AHEAD):
            training = self.config.training
            # Without extra trees, all trees in flight belong to the current step.
            left = len(self.growth.in_flight) if training.extra_trees else 0
            missing = max(0, training.trees_per_step + training.extra_trees - left)
            self.growth.plant(range(seen, seen + missing), step, 0)

    def discard_ahead(self) -> None:
        """Discards the trees planted for the next step."""
        self.growth.discard_ahead()

    def _in_waves(
        self, count: int, step: int, first: int, recorder: TreeRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """Grows and returns `count` trees in waves, of the problems from index `first` on."""
        config = self.config
        batch = self.problems.training_batch(first, count)
        names = tuple(agent.name for agent in config.agents)
        judge = training_score(config.credit.score)
        forest = Forest(batch, names, config.search, judge, [config.seed, step], self.begun)
        self.begun += count
        recorder.open_trees(forest.trees)
        rollout = Rollout(self.team, forest, recorder, self.should_stop)
        rollout.run()
        for name, seconds in rollout.seconds.items():
            phases[name] = phases.get(name, 0.0) + seconds
        return forest.trees

    def _gather(
        self,
        count: int,
        step: int,
        first: int,
        recorder: TreeRecorder,
        phases: dict[str, float],
        then: Then,
    ) -> list[GrowingTree]:
        """Returns at least `count` complete trees; `extra_trees` more grow alongside them."""
        trees = [one.tree for one in self.growth.members(Membership.AHEAD)]
        self.begun += len(trees)
        if not trees:
            missing = self._missing(count)
            again, self.again = self.again[:missing], self.again[missing:]
            new = range(first, first + missing - len(again))
            trees = self.growth.plant([*again, *new], step, self._opened)
            self.begun += len(new)
        recorder.open_trees(trees)
        self._opened += len(trees)
        # The problems of the next trees are generated while these are written.
        self.problems.training_batch(first + len(trees), count)
        return self.growth.gather(count, recorder, phases, then)

    def _missing(self, count: int) -> int:
        """Returns how many trees to plant for `count` complete ones."""
        return max(0, count + self.config.training.extra_trees - len(self.growth.in_flight))
