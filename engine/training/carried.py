"""Trees that grow on over the end of a step, so that no step waits for the slowest of them.

Lanes of trees write and are verified each at its own pace; what is asked of a generator stays in
one piece, so that a long answer holds up its own lane alone. A step takes the trees that are whole,
as soon as there are enough. The loop waits for the first lane whose answers are there; that
unblocks their verification and the next expansions of its trees.

Invariant: a tree is in exactly one lane until it is returned whole, and is returned once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import ray

from engine.config import RunConfig
from engine.problems.source import ProblemSet
from engine.training.forest import Claim, Forest, GrowingTree, training_score
from engine.training.rollout import RolloutSink, Stopped, by_agent, in_order_of_opening, timed
from engine.training.team import Asked, Team
from engine.training.waits import CALL_DEADLINE, REPORT_AFTER, TeamError


@dataclass(eq=False)
class _Lane:
    """Trees of one forest that advance together."""

    forest: Forest
    trees: list[GrowingTree]
    claims: dict[str, list[Claim]] = field(default_factory=dict)
    asked: Asked | None = None


class CarriedTrees:
    """All trees that are under way."""

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
        self.trees: dict[GrowingTree, int] = {}
        """Those under way, with the position of their problem in the training problems."""
        self._lanes: list[_Lane] = []

    def plant(self, positions: Sequence[int], step: int, first: int) -> list[GrowingTree]:
        """New trees of these problems; `first` were opened in this step before. They grow as soon
        as trees are gathered."""
        config = self.config
        batch = [self.problems.training_batch(position, 1)[0] for position in positions]
        names = tuple(agent.name for agent in config.agents)
        judge = training_score(config.credit.score)
        forest = Forest(batch, names, config.search, judge, [config.seed, step], first)
        self.trees |= zip(forest.trees, positions, strict=True)
        count = config.compute.lanes
        lanes = [_Lane(forest, forest.trees[start::count]) for start in range(count)]
        self._lanes += [lane for lane in lanes if lane.trees]
        return forest.trees

    def gather(self, count: int, sink: RolloutSink, phases: dict[str, float]) -> list[GrowingTree]:
        """Grow until so many trees are whole, and take all that are.

        Raises:
            Stopped: when a stop was asked for.
            TeamError: an actor failed, or nobody answered within the deadline.
        """
        whole: list[GrowingTree] = []
        for lane in self._lanes:
            if lane.asked is None:
                self._write(lane, sink)
        while len(whole) < count and self._lanes:
            if self.should_stop():
                raise Stopped
            with timed(phases, "generate"):
                lane = self._next_ready()
            self._close(lane, sink, phases)
            whole += [tree for tree in lane.trees if lane.forest.end(tree)]
            lane.trees = [tree for tree in lane.trees if not lane.forest.end(tree)]
            if lane.trees:
                self._write(lane, sink)
            else:
                self._lanes.remove(lane)
        for tree in whole:
            del self.trees[tree]
        return whole

    def _write(self, lane: _Lane, sink: RolloutSink) -> None:
        claims = lane.forest.claim(lane.trees)
        lane.claims = by_agent(claims, self.team.agents)
        for claim in claims:
            sink.opened(claim)
        requests = {
            agent: [claim.tree.request(claim.expansion) for claim in mine]
            for agent, mine in lane.claims.items()
        }
        lane.asked = self.team.answer(requests, whole=True)

    def _next_ready(self) -> _Lane:
        """The first lane of which every answer is there."""
        waited = 0.0
        while True:
            pending = []
            for lane in self._lanes:
                assert lane.asked
                _, missing = ray.wait(
                    lane.asked.futures, num_returns=len(lane.asked.futures), timeout=0
                )
                if not missing:
                    if waited:
                        self.team.waiting("", 0.0)
                    return lane
                pending += missing
            if not ray.wait(pending, num_returns=1, timeout=REPORT_AFTER)[0]:
                if not waited:
                    self.team.waiting("agents to write", CALL_DEADLINE)
                waited += REPORT_AFTER
            if waited >= CALL_DEADLINE:
                raise TeamError(
                    f"waited {waited:.0f} s for agents to write; look at the load of the machine"
                )

    def _close(self, lane: _Lane, sink: RolloutSink, phases: dict[str, float]) -> None:
        assert lane.asked
        answers = self.team.answered(lane.asked)
        pairs = list(in_order_of_opening(lane.claims, answers))
        programs = [(claim.tree.problem, answer.program) for claim, answer in pairs]
        with timed(phases, "verify"):
            verifications = self.team.verifier.verify(programs)
        for (claim, answer), verification in zip(pairs, verifications, strict=True):
            sink.closed(claim.tree, lane.forest.close(claim, answer, verification))
