"""Forest: the trees of one step, which grow together.

Invariants:
- A tree is a pure function of its seed and of the answers: each has its own random generator.
- Where nodes close in the order in which they were opened (`waves.py`), one seed gives one forest.
- A node without a score (verification failed technically) is excluded and counted.
- The turns of an episode close together, with one score; until then its expansion is in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from engine.config.credit import CreditConfig
from engine.config.evaluation import PublicScore
from engine.config.search import SearchConfig
from engine.credit.rewards import raw_score
from engine.environments.types import Outcome, Settled
from engine.events.vocabulary import Verdict
from engine.policy.types import Answer, Request
from engine.problems.problem import Problem
from engine.rollout.episodes import truncated
from engine.search.expansion import Expansion
from engine.search.scheduler import Spending, TreeBudget, TreeEnd
from engine.search.strategies import planted
from engine.search.tree import SearchTree


@dataclass(frozen=True, slots=True)
class OpenNode:
    """An opened node that waits for its answer."""

    tree: GrowingTree
    expansion: Expansion

    @property
    def node(self) -> int:
        assert self.expansion.node is not None
        return self.expansion.node


@dataclass(frozen=True, slots=True)
class ClosedNode:
    """A closed node: its answer, what came of it, and its score."""

    node: int
    parent: int
    agent: str
    answer: Answer
    verification: Outcome
    """The verdict on its program, or what else came of its action."""
    score: float | None
    """Of a turn after which its episode went on, that of the episode."""
    packed_draws: bytes
    """`draws` as JSON: one object per node instead of some ten, which the garbage collector would
    traverse again and again in a large tree."""
    observation: Any = None
    """What its children are shown; None if nothing can follow."""

    @property
    def is_answer(self) -> bool:
        """Whether it ends its episode; False of a turn after which its episode went on."""
        return self.verification.verdict is not Verdict.PLAYED

    @property
    def draws(self) -> dict[str, Any]:
        """The draws that chose its parent and agent; see `Expansion`."""
        return msgspec.json.decode(self.packed_draws)


@dataclass(eq=False)
class GrowingTree:
    """One problem, its search tree, and its closed nodes by node id."""

    problem: Problem
    search: SearchTree
    id: int = 0
    """Id in the event log; 0 for a tree that is not logged."""
    written: dict[int, ClosedNode] = field(default_factory=dict)
    playing: dict[int, ClosedNode] = field(default_factory=dict)
    """Answered turns of episodes that go on, by node id; they are written when these end."""
    coming: list[Expansion] = field(default_factory=list)
    """Turns of such episodes that are open and not claimed yet."""
    spending: Spending = field(default_factory=Spending)
    seed: tuple[int, ...] = ()
    """Seed of its search; with a node's id it names the random stream of that node's answer."""
    number: int = 0
    """Number of its problem in the training split; 0 outside of training."""
    nodes: int | None = None
    """Its budget of nodes; None: `search.nodes_per_tree`."""

    def scores(self) -> list[float]:
        return [node.score for node in self.written.values() if node.score is not None]

    def verified(self) -> list[ClosedNode]:
        """Returns the scored nodes in order of creation, without those that failed technically."""
        return [node for _, node in sorted(self.written.items()) if node.score is not None]

    @property
    def solved(self) -> bool:
        return any(score == 1.0 for score in self.scores())

    def request(self, expansion: Expansion) -> Request:
        """Returns the request of an expansion: a turn of the problem, after what was observed."""
        assert expansion.node is not None
        name = (*self.seed, expansion.node) if self.seed else ()
        logged = (self.id, expansion.node) if self.id else None
        if expansion.parent == 0:
            return Request(self.problem, name=name, node=logged)
        parent = self.playing.get(expansion.parent) or self.written[expansion.parent]
        return Request(self.problem, parent.observation, name, logged)

    def turn(self, node: int) -> int:
        """Returns the number of an open node's turn within its episode, from 1."""
        number, above = 1, self.search.nodes[node].parent
        while above in self.playing:
            number, above = number + 1, self.search.nodes[above].parent
        return number

    def go_on(self, node: ClosedNode) -> None:
        """Opens the turn that follows an answered one; nothing is closed yet."""
        self.playing[node.node] = node
        self.coming.append(self.search.go_on(node.node))

    def close(self, node: ClosedNode) -> list[ClosedNode]:
        """Records a node that has its score, and with it the turns of its episode before it;
        updates posteriors and spending. Returns all of them in the order of creation."""
        self.search.close(node.node, node.score, final=node.observation is None)
        closed = [node]
        while before := self.playing.pop(closed[0].parent, None):
            closed.insert(0, replace(before, score=node.score))
        for one in closed:
            self.written[one.node] = one
            self.spending.tokens += one.answer.generation.tokens
        self.spending.solved |= public_score(node.verification) == 1.0
        return closed


Judge = Callable[[Outcome], float | None]


def training_score(config: CreditConfig) -> Judge:
    """Returns the function that scores all tests by the configured reward; None if verification
    failed technically."""

    def judge(verification: Outcome) -> float | None:
        if verification.verdict is Verdict.SANDBOX_FAILURE:
            return None
        return raw_score(verification, config)

    return judge


def public_score(verification: Outcome) -> float | None:
    """Returns the share of public tests passed, which guides searches outside of training, where
    private tests are hidden; None if verification failed technically. Where there are no tests,
    nothing is hidden, and it is the whole score."""
    if verification.verdict is Verdict.SANDBOX_FAILURE:
        return None
    if not verification.public:
        return verification.fraction
    return verification.public_passed / len(verification.public)


def public_judge(kind: PublicScore) -> Judge:
    """Returns the function that scores public tests: the share that passes, or 1 if all pass and 0
    otherwise."""

    def judge(verification: Outcome) -> float | None:
        share = public_score(verification)
        return share if share is None or kind is PublicScore.FRACTION else float(share == 1.0)

    return judge


class Forest:
    """Opens nodes, and closes them with answers and verdicts, until every budget is spent."""

    def __init__(
        self,
        problems: Sequence[Problem],
        agents: Sequence[str],
        search: SearchConfig,
        judge: Judge,
        seed: Sequence[int],
        first: int = 0,
        memory: Any = None,
    ):
        """`first` is the index of the first tree among all that share the seed; `memory` that of
        the run's strategy, if it has one."""
        self.judge = judge
        self.budget = TreeBudget.of(search)
        self.turns = search.turns_per_episode
        self.trees = [
            GrowingTree(
                problem,
                planted(agents, search, np.random.default_rng([*seed, position]), memory),
                seed=(*seed, position),
            )
            for position, problem in enumerate(problems, first)
        ]

    def claim(self, trees: Sequence[GrowingTree]) -> list[OpenNode]:
        """Opens and returns the nodes that the budgets of these trees allow now, and the next turns
        of their episodes."""
        return [OpenNode(tree, expansion) for tree in trees for expansion in self._claimed(tree)]

    def end(self, tree: GrowingTree) -> TreeEnd | None:
        """Returns why a tree opens no more nodes; None while it may."""
        return self._budget(tree).end(tree.search, tree.spending)

    def is_spent(self, tree: GrowingTree) -> bool:
        """Whether a tree is complete: nothing is left to open, and nothing is in flight."""
        return self._budget(tree).is_spent(tree.search, tree.spending)

    def close(self, claim: OpenNode, answer: Answer, settled: Settled) -> list[ClosedNode]:
        """Closes a node with its answer and what came of it, and the turns of its episode before
        it; updates posteriors and tree. Returns what was closed, in the order of creation: nothing
        while the episode goes on, whose next turn `claim` then returns."""
        expansion, tree = claim.expansion, claim.tree
        if settled.goes_on and tree.turn(claim.node) >= self.turns:
            settled = truncated(settled, self.turns)
        node = ClosedNode(
            claim.node,
            expansion.parent,
            expansion.agent,
            answer,
            settled.outcome,
            None if settled.goes_on else self.judge(settled.outcome),
            msgspec.json.encode(expansion.draws),
            settled.observation,
        )
        if settled.goes_on:
            tree.go_on(node)
            return []
        return tree.close(node)

    def _claimed(self, tree: GrowingTree) -> list[Expansion]:
        coming, tree.coming = tree.coming, []
        return [*coming, *self._budget(tree).claim(tree.search, tree.spending)]

    def _budget(self, tree: GrowingTree) -> TreeBudget:
        return self.budget if tree.nodes is None else self.budget.of_nodes(tree.nodes)
