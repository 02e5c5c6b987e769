"""Continuous rollout: trees grow without waves, and neither agents nor sandbox wait for a batch.

An answer is verified as soon as it completes, and its verdict opens the next expansions of its
tree, which join the running batch of their agent. A step takes the complete trees as soon as there
are enough; the others are carried over to the next step (`training.extra_trees`). The trees of a
step may be planted while those of the previous step still grow; each begins as one of these
completes, so that the number of growing trees stays the same. Their events are buffered until
their step begins. The loop waits for the next turn of an agent or piece of verification, whichever
ends first, and for calls that have a continuation (`Then`).

Invariants:
- A tree is in flight until it is returned complete, and is returned once.
- An answer's tokens are a function of its tree's seed and its node; the order in which nodes close
  depends on the clock. `compute.deterministic` and the other settings for which
  `step_rollout.grows_on` is false therefore grow trees in waves (`waves.py`).
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
from engine.rollout.types import RolloutSink, RolloutTeam, Stopped
from engine.run.timing import timed
from engine.run.waits import wait_for_any
from engine.sandbox.host.verify import Verification


@dataclass(frozen=True)
class Then:
    """A continuation: `do` runs as soon as `calls` have ended, while trees grow."""

    calls: Sequence[Any] = ()
    do: Callable[[], None] = lambda: None


class ContinuousRollout:
    """All trees in flight: generation, verification and growth without barriers."""

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
        self.trees: dict[GrowingTree, int] = {}
        """Trees that no step has taken, with the index of their problem in the training set."""
        self._forests: dict[GrowingTree, Forest] = {}
        self.ahead: dict[GrowingTree, None] = {}
        """Trees whose step has not begun ..."""
        self._untold: list[tuple[GrowingTree, OpenNode | ClosedNode]] = []
        """... and the nodes opened and closed in them, in order, not yet reported."""
        self._unopened: deque[GrowingTree] = deque()
        """Trees of `ahead` that wait for others to complete before they begin."""
        self._whole: list[GrowingTree] = []
        self._writing = GenerationDispatcher(team)
        self._asked: dict[int, OpenNode] = {}
        """Nodes being generated, by request number."""
        self._judged: dict[int, tuple[OpenNode, Answer]] = {}
        """Nodes being verified, by ticket."""
        self._beside: list[Any] = []
        """Calls of an update in flight."""

    def plant(self, positions: Sequence[int], step: int, first: int) -> list[GrowingTree]:
        """Returns new trees of these problems; `first` is the number of trees that this step opened
        before. They begin as others complete; the next `gather` begins the rest, and their step."""
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
        """Discards the trees whose step has not begun; answers in flight for them are ignored."""
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
        """Grows trees until `count` are complete, and returns all complete ones; trees planted
        meanwhile belong to a later step. `then` does not run if its calls outlast the growth.

        Raises:
            Stopped: a stop was requested.
            TeamError: an actor failed, or no call ended within the deadline.
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
        """Keeps trees that no step waits for growing until these calls have ended, or nothing is
        in flight any more; a long wait is reported as `name`."""
        self._beside = list(calls)
        while self._beside and (self._asked or self._judged):
            self._go_on(sink, {}, name)

    def _open(self, count: int) -> None:
        """Begins up to `count` of the trees that wait."""
        if some := [self._unopened.popleft() for _ in range(min(count, len(self._unopened)))]:
            self._untold += [(claim.tree, claim) for claim in self._claim(some)]

    def _claim(self, trees: Sequence[GrowingTree]) -> list[OpenNode]:
        """Opens the nodes that the budgets of these trees allow now, and requests their answers."""
        claims = [claim for tree in trees for claim in self._forests[tree].claim([tree])]
        for claim in claims:
            request = claim.tree.request(claim.expansion)
            self._asked[self._writing.ask(claim.expansion.agent, request)] = claim
        self._writing.send(self._urgent(), self._coming())
        return claims

    def _urgent(self) -> list[int]:
        """Requests of the current step; empty unless trees of a later step are in flight too."""
        asked = self._asked.items() if self.ahead else ()
        return [number for number, claim in asked if claim.tree not in self.ahead]

    def _coming(self, answered: Sequence[OpenNode] = ()) -> int:
        """Number of nodes in verification, or `answered` and about to be verified, whose verdicts
        will issue more requests; 0 where to wait for them saves nothing: on GPUs, or while no
        learner needs the cores."""
        if self.team.on_gpus or not self._beside:
            return 0
        judged = [*(claim for claim, _ in self._judged.values()), *answered]
        return sum(self._forests[claim.tree].end(claim.tree) is None for claim in judged)

    def _taken(self) -> list[GrowingTree]:
        """The complete trees of the current step."""
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
        """Processes the calls that end next, and requests what follows from them."""
        verifier, turns = self.team.verifier, self._writing.turns
        if not (verdicts := verifier.taken(())):  # verdicts that ended while others verified
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
                continue  # of a discarded tree
            claim, answer = self._judged.pop(ticket)
            node = self._forests[claim.tree].close(claim, answer, verification)
            self._tell(claim.tree, node, sink)
            grown[claim.tree] = None
        for claim in self._claim(list(grown)):
            self._tell(claim.tree, claim, sink)
        whole = [tree for tree in grown if self._forests[tree].is_spent(tree)]
        self._whole += whole
        self._open(len(whole))
