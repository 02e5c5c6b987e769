"""Budget of a tree, and the limit on its open nodes, which decide when it may expand.

Invariant: a tree never has more than `nodes_per_tree` expansions, failed ones included, nor more
than `nodes_in_flight` of them open; each is one node, or one episode of several turns. There is no
barrier: after each close the caller claims again, and gets as many expansions as the limits allow.
For any reason of a tree's end, open nodes are completed; so nodes in flight may exceed the limits
of tokens and seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.config.search import SearchConfig
from engine.search.expansion import Expansion
from engine.search.tree import SearchTree


class TreeEnd(StrEnum):
    """Why a tree opens no more nodes."""

    NODES = "nodes"
    """Its budget of nodes is used up."""
    TOKENS = "tokens"
    SECONDS = "seconds"
    SOLVED = "solved"
    """A node passes all public tests, and `stop_when_solved` is set."""


@dataclass
class Spending:
    """What one tree has used of its budget, apart from nodes."""

    tokens: int = 0
    """Tokens of the answers of closed nodes."""
    started: float | None = None
    """Monotonic seconds of the first claim."""
    solved: bool = False
    """Whether a node passes all public tests."""

    def age(self) -> float:
        """Returns the seconds since the first claim."""
        return 0.0 if self.started is None else time.monotonic() - self.started


@dataclass(frozen=True)
class TreeBudget:
    """Limits of a tree, which all trees of a step share but for the number of nodes; stateless."""

    nodes_per_tree: int
    nodes_in_flight: int = 1
    tokens: int | None = None
    seconds: float | None = None
    stop_when_solved: bool = False

    def __post_init__(self) -> None:
        if self.nodes_per_tree < 1 or self.nodes_in_flight < 1:
            raise ValueError(
                f"nodes_per_tree = {self.nodes_per_tree}, "
                f"nodes_in_flight = {self.nodes_in_flight}: both must be at least 1"
            )

    @classmethod
    def of(cls, search: SearchConfig) -> TreeBudget:
        """Returns the limits of these settings."""
        return cls(
            search.nodes_per_tree,
            search.nodes_in_flight,
            search.tokens_per_tree,
            search.seconds_per_tree,
            search.stop_when_solved,
        )

    def of_nodes(self, nodes: int) -> TreeBudget:
        """Returns the same limits with another number of nodes."""
        return replace(self, nodes_per_tree=nodes)

    def claim(self, tree: SearchTree, spending: Spending | None = None) -> list[Expansion]:
        """Selects and opens as many expansions as the limits allow; each has its node's id."""
        if spending and spending.started is None:
            spending.started = time.monotonic()
        claimed = []
        for _ in range(self.room(tree, spending)):
            expansion = tree.select()
            claimed.append(expansion.opened(tree.open(expansion)))
        return claimed

    def room(self, tree: SearchTree, spending: Spending | None = None) -> int:
        """Returns the number of expansions that `claim` would open."""
        if self.end(tree, spending):
            return 0
        unspent = self.nodes_per_tree - tree.expansions
        return max(0, min(self.nodes_in_flight - tree.in_flight, unspent))

    def end(self, tree: SearchTree, spending: Spending | None = None) -> TreeEnd | None:
        """Returns why no more nodes will be opened; None while some may be."""
        if spending:
            if self.stop_when_solved and spending.solved:
                return TreeEnd.SOLVED
            if self.tokens is not None and spending.tokens >= self.tokens:
                return TreeEnd.TOKENS
            # A tree's first node is always opened: a late answer is better than none.
            if self.seconds is not None and tree.expansions and spending.age() >= self.seconds:
                return TreeEnd.SECONDS
        return TreeEnd.NODES if tree.expansions >= self.nodes_per_tree else None

    def is_spent(self, tree: SearchTree, spending: Spending | None = None) -> bool:
        """Returns whether no node is open and none will be opened."""
        return tree.in_flight == 0 and self.room(tree, spending) == 0
