"""Forest: the trees of one step, which grow together.

Invariants:
- A tree is a pure function of its seed and of the answers: each has its own random generator.
- Where nodes close in the order in which they were opened (`waves.py`), one seed gives one forest.
- A node without a score (verification failed technically) is excluded and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from engine.config.credit import CreditConfig
from engine.config.search import SearchConfig
from engine.config.training import PublicScore
from engine.credit.rewards import raw_score
from engine.events.vocabulary import Verdict
from engine.policy.prompts import Feedback
from engine.policy.types import Answer, Request
from engine.problems.problem import Problem
from engine.sandbox.host.verify import Verification
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
    """A closed node: its answer, verification and score."""

    node: int
    parent: int
    agent: str
    answer: Answer
    verification: Verification
    score: float | None
    packed_draws: bytes
    """`draws` as JSON: one object per node instead of some ten, which the garbage collector would
    traverse again and again in a large tree."""

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
    error_feedback: bool = True
    """Whether refinement prompts include the parent's results on the public tests."""
    error_traceback: bool = False
    """Whether they also include the last frames of its traceback."""
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
        """Returns the request of an expansion: the problem, or its parent with feedback."""
        assert expansion.node is not None
        name = (*self.seed, expansion.node) if self.seed else ()
        logged = (self.id, expansion.node) if self.id else None
        if expansion.parent == 0:
            return Request(self.problem, name=name, node=logged)
        parent = self.written[expansion.parent]
        verification = parent.verification
        feedback = Feedback(
            parent.answer.program,
            verification.public if self.error_feedback else None,
            verification.traces if self.error_traceback else (),
        )
        return Request(self.problem, feedback, name, logged)

    def close(self, node: ClosedNode) -> None:
        """Records a closed node; updates posteriors and spending."""
        self.search.close(node.node, node.score)
        self.written[node.node] = node
        self.spending.tokens += node.answer.generation.tokens
        self.spending.solved |= public_score(node.verification) == 1.0


Judge = Callable[[Verification], float | None]


def training_score(config: CreditConfig) -> Judge:
    """Returns the function that scores all tests by the configured reward; None if verification
    failed technically."""

    def judge(verification: Verification) -> float | None:
        if verification.verdict is Verdict.SANDBOX_FAILURE:
            return None
        return raw_score(verification, config)

    return judge


def public_score(verification: Verification) -> float | None:
    """Returns the share of public tests passed, which guides searches outside of training, where
    private tests are hidden; None if verification failed technically."""
    if verification.verdict is Verdict.SANDBOX_FAILURE:
        return None
    return verification.public_passed / len(verification.public)


def public_judge(kind: PublicScore) -> Judge:
    """Returns the function that scores public tests: the share that passes, or 1 if all pass and 0
    otherwise."""

    def judge(verification: Verification) -> float | None:
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
        self.trees = [
            GrowingTree(
                problem,
                planted(agents, search, np.random.default_rng([*seed, position]), memory),
                error_feedback=search.error_feedback,
                error_traceback=search.error_traceback,
                seed=(*seed, position),
            )
            for position, problem in enumerate(problems, first)
        ]

    def claim(self, trees: Sequence[GrowingTree]) -> list[OpenNode]:
        """Opens and returns the nodes that the budgets of these trees allow now."""
        return [
            OpenNode(tree, expansion)
            for tree in trees
            for expansion in self._budget(tree).claim(tree.search, tree.spending)
        ]

    def end(self, tree: GrowingTree) -> TreeEnd | None:
        """Returns why a tree opens no more nodes; None while it may."""
        return self._budget(tree).end(tree.search, tree.spending)

    def is_spent(self, tree: GrowingTree) -> bool:
        """Whether a tree is complete: nothing is left to open, and nothing is in flight."""
        return self._budget(tree).is_spent(tree.search, tree.spending)

    def close(self, claim: OpenNode, answer: Answer, verification: Verification) -> ClosedNode:
        """Closes a node with its answer and verdict; updates posteriors and tree."""
        expansion = claim.expansion
        node = ClosedNode(
            claim.node,
            expansion.parent,
            expansion.agent,
            answer,
            verification,
            self.judge(verification),
            msgspec.json.encode(expansion.draws),
        )
        claim.tree.close(node)
        return node

    def _budget(self, tree: GrowingTree) -> TreeBudget:
        return self.budget if tree.nodes is None else self.budget.of_nodes(tree.nodes)
