"""The trees of a step, from the problems whose turn it is.

Invariant: problems are taken in their order, each once; those whose trees a resume cut off come
first. Trees grow in waves, each step's for itself, or without (`grows_on`).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.config.agents import GeneratorName
from engine.config.schema import RunConfig
from engine.credit.filters import usable
from engine.problems.source import ProblemSet
from engine.rollout.continuous import ContinuousRollout, Then
from engine.rollout.forest import Forest, GrowingTree, training_score
from engine.rollout.waves import Rollout
from engine.training.team import Team
from engine.training.telemetry import StepRecorder


def grows_on(config: RunConfig) -> bool:
    """Whether an answer is verified, and its successors join the running batch, without waves.

    So it is where trees outlast their step; where vLLM writes, whose batch is always open; where a
    generator writes beside the learner (`training.overlap`) and would idle while programs are
    verified; and where nothing follows an answer, as in flat groups, so that no batch gets smaller
    by it. Else the torch generator on few cores gains less by an open batch than its smaller
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
    """Grows as many trees as a step is to learn from."""

    def __init__(
        self,
        config: RunConfig,
        team: Team,
        problems: ProblemSet,
        should_stop: Callable[[], bool],
    ):
        self.config = config
        self.team = team
        self.problems = problems
        self.should_stop = should_stop
        self.growth = ContinuousRollout(config, team, problems, should_stop)
        self.again: list[int] = []
        """Problems whose trees a resume cut off: they are begun again first."""
        self.begun = 0
        """New problems of this step."""
        self.refilled = 0
        """Trees that took the place of some that would have been left out."""
        self._opened = 0
        self._settled = True
        """Whether this step begins no more problems, and leaves no tree to the next."""

    @property
    def carried(self) -> list[int]:
        """Problems whose trees are under way; of the next step's none is begun yet."""
        under_way = self.growth.trees.items()
        ahead = self.growth.ahead
        return [*(place for tree, place in under_way if tree not in ahead), *self.again]

    def grow(
        self, step: int, seen: int, recorder: StepRecorder, phases: dict[str, float], then: Then
    ) -> list[GrowingTree]:
        """The trees of a step; those that would be left out are replaced while rounds are left.

        `seen` problems were begun before this step. What comes `then` is done as soon as its calls
        have ended, if that is before the trees are whole.

        Raises:
            Stopped: a stop was asked for.
            TeamError: an actor failed, or nobody answered within the deadline.
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
        """Have the next step's trees grow before `grow` is asked for them, if it is known which
        problems they are of: `seen` were begun before that step."""
        if self._settled and not self.again and not self.growth.ahead:
            training = self.config.training
            # Without extra trees, those that grow now are all of the step that ends.
            left = len(self.growth.trees) if training.extra_trees else 0
            missing = max(0, training.trees_per_step + training.extra_trees - left)
            self.growth.plant(range(seen, seen + missing), step, 0)

    def forget_ahead(self) -> None:
        """The next step is not going to be."""
        self.growth.forget()

    def _in_waves(
        self, count: int, step: int, first: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """So many trees of the problems from `first` on."""
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
        recorder: StepRecorder,
        phases: dict[str, float],
        then: Then,
    ) -> list[GrowingTree]:
        """At least so many whole trees; as many as `extra_trees` more grow beside them."""
        trees = list(self.growth.ahead)
        self.begun += len(trees)
        if not trees:
            missing = self._missing(count)
            again, self.again = self.again[:missing], self.again[missing:]
            new = range(first, first + missing - len(again))
            trees = self.growth.plant([*again, *new], step, self._opened)
            self.begun += len(new)
        recorder.open_trees(trees)
        self._opened += len(trees)
        # The problems of the next trees are made while these are written.
        self.problems.training_batch(first + len(trees), count)
        return self.growth.gather(count, recorder, phases, then)

    def _missing(self, count: int) -> int:
        """How many trees are to be planted for so many whole ones."""
        return max(0, count + self.config.training.extra_trees - len(self.growth.trees))
