"""Trees that grow without waves: whoever writes, or verifies, goes on as soon as it can.

An answer is verified as soon as it has ended, and its verdict opens the next expansions of its
tree, which join the running batch of their agent. A step takes the trees that are whole, as soon
as there are enough; others grow on over its end (`training.extra_trees`). The trees of a step may
be planted while those of the one before still grow, and begin as these become whole, so that as
much is under way as before and no more: nothing is told of them until their step begins. The loop
waits for the next turn of an agent or piece of verification, whichever ends first, and for whatever
is to be done as soon as it has ended (`Then`).

Invariants:
- A tree is under way until it is returned whole, and is returned once.
- An answer's tokens follow from its tree's seed and its node; in which order nodes close hangs on
  the clock, so `compute.deterministic` grows its trees in waves (`waves.py`) instead, as do
  others that `step_rollout.grows_on` tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.schema import RunConfig
from engine.policy.types import Answer
from engine.problems.source import ProblemSet
from engine.rollout.forest import ClosedNode, Forest, GrowingTree, OpenNode, training_score
from engine.rollout.generation_dispatcher import GenerationDispatcher
from engine.rollout.waves import RolloutSink, Stopped, timed
from engine.run.waits import wait_for_any
from engine.sandbox.host.verify import Verification
from engine.training.team import Team


@dataclass(frozen=True)
class Then:
    """What is to be done as soon as some calls have ended, while trees grow."""

    calls: Sequence[Any] = ()
    do: Callable[[], None] = lambda: None


class ContinuousRollout:
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
        """Those that no step has taken, with the position of their problem in the training
        problems."""
        self._forests: dict[GrowingTree, Forest] = {}
        self.ahead: dict[GrowingTree, None] = {}
        """Trees whose step has not begun ..."""
        self._untold: list[tuple[GrowingTree, OpenNode | ClosedNode]] = []
        """... and what was opened and closed in them, in this order."""
        self._unopened: deque[GrowingTree] = deque()
        """Those of them that wait for others to become whole."""
        self._whole: list[GrowingTree] = []
        self._writing = GenerationDispatcher(team)
        self._asked: dict[int, OpenNode] = {}
        """What is being written, by its number."""
        self._judged: dict[int, tuple[OpenNode, Answer]] = {}
        """What is being verified, by its ticket."""
        self._beside: list[Any] = []
        """Calls of an update that is under way."""

    def plant(self, positions: Sequence[int], step: int, first: int) -> list[GrowingTree]:
        """New trees of these problems; `first` were opened in this step before. They begin as
        others become whole; all have begun, and their step has, when trees are gathered next."""
        growing = len(self.trees) - len(self._whole) - len(self._unopened)
        config = self.config
        batch = [self.problems.training_batch(position, 1)[0] for position in positions]
        names = tuple(agent.name for agent in config.agents)
        judge = training_score(config.credit.score)
        forest = Forest(batch, names, config.search, judge, [config.seed, step], first)
        self.trees |= zip(forest.trees, positions, strict=True)
        self._forests |= dict.fromkeys(forest.trees, forest)
        self.ahead |= dict.fromkeys(forest.trees)
        self._unopened += forest.trees
        self._open(len(forest.trees) - growing)
        return forest.trees

    def forget(self) -> None:
        """Let the trees be whose step has not begun; what is written for them is not taken."""
        gone, self.ahead = self.ahead, {}
        self._unopened.clear()
        for tree in gone:
            del self.trees[tree], self._forests[tree]
        self._untold.clear()
        self._whole = [tree for tree in self._whole if tree not in gone]
        self._asked = {n: claim for n, claim in self._asked.items() if claim.tree not in gone}
        self._judged = {n: pair for n, pair in self._judged.items() if pair[0].tree not in gone}

    def gather(
        self, count: int, sink: RolloutSink, phases: dict[str, float], then: Then
    ) -> list[GrowingTree]:
        """Grow until so many trees are whole, and take all that are; those that are planted
        meanwhile are of a later step. What comes `then` is not done if its calls take longer.

        Raises:
            Stopped: when a stop was asked for.
            TeamError: an actor failed, or nobody answered within the deadline.
        """
        for phase in ("generate", "verify"):
            phases.setdefault(phase, 0.0)
        self._open(len(self._unopened))
        self.ahead.clear()
        untold, self._untold = self._untold, []
        for tree, what in untold:
            self._tell(tree, what, sink)
        self._beside = list(then.calls)
        while len(whole := self._taken()) < min(count, len(self.trees) - len(self.ahead)):
            if self.should_stop():
                raise Stopped
            learning = bool(self._beside)
            self._go_on(sink, phases)
            if learning and not self._beside:
                then.do()
        self._whole = [tree for tree in self._whole if tree in self.ahead]
        for tree in whole:
            del self.trees[tree], self._forests[tree]
        return whole

    def attend(self, calls: Sequence[Any], name: str, sink: RolloutSink) -> None:
        """Let trees that no step waits for grow on until these calls have ended, or nothing is
        under way any more; a long wait is reported under the calls' name."""
        self._beside = list(calls)
        while self._beside and (self._asked or self._judged):
            self._go_on(sink, {}, name)

    def _open(self, count: int) -> None:
        """Let so many of the trees begin that wait for it."""
        if some := [self._unopened.popleft() for _ in range(min(count, len(self._unopened)))]:
            self._untold += [(claim.tree, claim) for claim in self._claim(some)]

    def _claim(self, trees: Sequence[GrowingTree]) -> list[OpenNode]:
        """Ask for what the budgets of these trees allow now."""
        claims = [claim for tree in trees for claim in self._forests[tree].claim([tree])]
        for claim in claims:
            request = claim.tree.request(claim.expansion)
            self._asked[self._writing.ask(claim.expansion.agent, request)] = claim
        self._writing.send(self._urgent(), self._coming())
        return claims

    def _urgent(self) -> list[int]:
        """What is written for the step that has begun, beside that for a later one."""
        asked = self._asked.items() if self.ahead else ()
        return [number for number, claim in asked if claim.tree not in self.ahead]

    def _coming(self, answered: Sequence[OpenNode] = ()) -> int:
        """Of what is verified, or `answered` and about to be, how much will have more asked for; 0
        where to wait for it saves nothing: on GPUs, or while no learner wants the cores."""
        if self.team.on_gpus or not self._beside:
            return 0
        judged = [*(claim for claim, _ in self._judged.values()), *answered]
        return sum(self._forests[claim.tree].end(claim.tree) is None for claim in judged)

    def _taken(self) -> list[GrowingTree]:
        """The whole trees of the step that has begun."""
        return [tree for tree in self._whole if tree not in self.ahead]

    def _tell(self, tree: GrowingTree, what: OpenNode | ClosedNode, sink: RolloutSink) -> None:
        if tree in self.ahead:
            self._untold.append((tree, what))
        elif isinstance(what, OpenNode):
            sink.opened(what)
        else:
            sink.closed(tree, what)

    def _go_on(
        self,
        sink: RolloutSink,
        phases: dict[str, float],
        name: str = "",
    ) -> None:
        """Take what ends next, and ask for what follows from it."""
        verifier, turns = self.team.verifier, self._writing.turns
        if not (verdicts := verifier.taken(())):  # of what ended while others verified
            waited_for = "agents to write" if self._asked else "sandbox"
            with timed(phases, "generate" if self._asked else "verify"):
                calls = [*turns, *verifier.calls, *self._beside]
                ended = wait_for_any(calls, name or waited_for, self.team.waiting)
            self._beside = [call for call in self._beside if call not in ended]
            turned = [turn for turn in turns if turn in ended]
            self._verify(self._writing.taken(turned))
            verdicts = verifier.taken(call for call in ended if call in verifier.calls)
        self._close(verdicts, sink)

    def _verify(self, answers: Mapping[int, Answer]) -> None:
        wanted = {number: answer for number, answer in answers.items() if number in self._asked}
        pairs = [(self._asked.pop(number), answer) for number, answer in wanted.items()]
        programs = [(claim.tree.problem, answer.program) for claim, answer in pairs]
        self._writing.send(self._urgent(), self._coming([claim for claim, _ in pairs]))
        self._judged |= zip(self.team.verifier.ask(programs), pairs, strict=True)

    def _close(self, verdicts: Mapping[int, Verification], sink: RolloutSink) -> None:
        grown: dict[GrowingTree, None] = {}
        for ticket, verification in verdicts.items():
            if ticket not in self._judged:
                continue  # of a tree that was let be
            claim, answer = self._judged.pop(ticket)
            node = self._forests[claim.tree].close(claim, answer, verification)
            self._tell(claim.tree, node, sink)
            grown[claim.tree] = None
        for claim in self._claim(list(grown)):
            self._tell(claim.tree, claim, sink)
        whole = [tree for tree in grown if self._forests[tree].is_spent(tree)]
        self._whole += whole
        self._open(len(whole))
