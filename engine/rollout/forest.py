"""The trees of one step, growing together.

Invariants:
- A tree is a pure function of its seed and of the answers: each has a generator of its own.
- Where nodes are closed in the order in which they were opened (`waves.py`), one seed gives one
  forest.
- A node without a score (verification failed technically) takes no part and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from engine.config.credit import Score
from engine.config.search import SearchConfig
from engine.events.vocabulary import Verdict
from engine.policy.prompts import Feedback
from engine.policy.types import Answer, Request
from engine.problems.problem import Problem
from engine.sandbox.host.verify import Verification
from engine.search.scheduler import Spending, TreeBudget, TreeEnd
from engine.search.tree import Expansion, SearchTree


@dataclass(frozen=True, slots=True)
class OpenNode:
    """A node that was opened and waits for its answer."""

    tree: GrowingTree
    expansion: Expansion

    @property
    def node(self) -> int:
        assert self.expansion.node is not None
        return self.expansion.node


@dataclass(frozen=True, slots=True)
class ClosedNode:
    """A closed node."""

    node: int
    parent: int
    agent: str
    answer: Answer
    verification: Verification
    score: float | None
    packed_draws: bytes
    """`draws` as JSON: one object per node instead of some ten, which the garbage collector of a
    large tree would go through again and again."""

    @property
    def draws(self) -> dict[str, Any]:
        """Why here and by whom; see `Expansion`."""
        return msgspec.json.decode(self.packed_draws)


@dataclass(eq=False)
class GrowingTree:
    """One problem, its search tree, and what was written so far by node id."""

    problem: Problem
    search: SearchTree
    id: int = 0
    """Id in the event log; 0 for a tree that is not logged."""
    written: dict[int, ClosedNode] = field(default_factory=dict)
    error_feedback: bool = True
    """Refinement prompts say how the parent did on the public tests."""
    spending: Spending = field(default_factory=Spending)
    seed: tuple[int, ...] = ()
    """Of its search; with a node's id it names the random numbers of that node's answer."""

    def scores(self) -> list[float]:
        return [node.score for node in self.written.values() if node.score is not None]

    def verified(self) -> list[ClosedNode]:
        """In the order of creation, nodes whose verification failed technically left out."""
        return [node for _, node in sorted(self.written.items()) if node.score is not None]

    @property
    def solved(self) -> bool:
        return any(score == 1.0 for score in self.scores())

    def request(self, expansion: Expansion) -> Request:
        """The prompt of an expansion: the problem, or its parent with feedback."""
        assert expansion.node is not None
        name = (*self.seed, expansion.node) if self.seed else ()
        if expansion.parent == 0:
            return Request(self.problem, name=name)
        parent = self.written[expansion.parent]
        public = parent.verification.public if self.error_feedback else None
        return Request(self.problem, Feedback(parent.answer.program, public), name)

    def close(self, node: ClosedNode) -> None:
        """Record a node that was written; posteriors and spending advance."""
        self.search.close(node.node, node.score)
        self.written[node.node] = node
        self.spending.tokens += node.answer.generation.tokens
        self.spending.solved |= public_score(node.verification) == 1.0


Judge = Callable[[Verification], float | None]


def training_score(kind: Score) -> Judge:
    """Score on all tests (docs/algorithm.md, section 4): 1 if all pass, or the share that does."""

    def judge(verification: Verification) -> float | None:
        if verification.verdict is Verdict.SANDBOX_FAILURE:
            return None
        return verification.fraction if kind is Score.FRACTION else float(verification.passed)

    return judge


def public_score(verification: Verification) -> float | None:
    """Share of public tests: what guides a search at evaluation, where private tests are hidden."""
    if verification.verdict is Verdict.SANDBOX_FAILURE:
        return None
    return verification.public_passed / len(verification.public)


class Forest:
    """Claims expansions, takes answers with their verdicts, until every budget is spent."""

    def __init__(
        self,
        problems: Sequence[Problem],
        agents: Sequence[str],
        search: SearchConfig,
        judge: Judge,
        seed: Sequence[int],
        first: int = 0,
    ):
        """`first` is the position of the first tree among all that share the seed."""
        self.judge = judge
        self.budget = TreeBudget.of(search)
        self.trees = [
            GrowingTree(
                problem,
                self._tree(agents, search, [*seed, position]),
                error_feedback=search.error_feedback,
                seed=(*seed, position),
            )
            for position, problem in enumerate(problems, first)
        ]

    def claim(self, trees: Sequence[GrowingTree]) -> list[OpenNode]:
        """Open what the budgets of these trees allow now."""
        return [
            OpenNode(tree, expansion)
            for tree in trees
            for expansion in self.budget.claim(tree.search, tree.spending)
        ]

    def end(self, tree: GrowingTree) -> TreeEnd | None:
        """Why a tree opens no more nodes; None while it may."""
        return self.budget.end(tree.search, tree.spending)

    def is_spent(self, tree: GrowingTree) -> bool:
        """Whether a tree is whole: nothing is left to open, and nothing is under way."""
        return self.budget.is_spent(tree.search, tree.spending)

    def close(self, claim: OpenNode, answer: Answer, verification: Verification) -> ClosedNode:
        """Record an answer and its verdict; posteriors and tree advance."""
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

    @staticmethod
    def _tree(agents: Sequence[str], search: SearchConfig, seed: list[int]) -> SearchTree:
        rng = np.random.default_rng(seed)
        return SearchTree(
            agents,
            search.posterior,
            search.selection_order,
            rng,
            search.rho,
            search.agent_choice,
            search.max_depth,
        )
