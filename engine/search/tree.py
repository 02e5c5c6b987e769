"""The shared search tree: its nodes, and the rules that every strategy obeys.

How it grows is its strategy's (`engine.search.strategies`). Invariants:
- Nodes are numbered in the order of creation; node 0 is the root, the problem statement.
- Only the root and scored nodes are expanded; open and failed nodes never are.
- A strategy receives every node once when it opens, and once when it closes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engine.search.expansion import Expansion
from engine.search.node import NodeState, SearchNode
from engine.search.strategy import Strategy


class SearchTree:
    """One tree of one problem."""

    def __init__(
        self,
        agents: Sequence[str],
        strategy: Callable[[Sequence[SearchNode], tuple[str, ...]], Strategy],
    ):
        """`strategy` makes the tree's strategy, from its nodes, which grow, and its agents."""
        if not agents or len(set(agents)) < len(agents):
            raise ValueError(f"agents = {list(agents)!r}: name at least one, each only once")
        self.agents = tuple(agents)
        self.nodes: list[SearchNode] = []
        self.in_flight = 0
        """Number of open nodes."""
        self._add(parent=None, depth=0, agent=None, state=NodeState.SCORED)
        # It gets the list of nodes and not the tree: without a cycle, a tree is freed with its last
        # reference, without the garbage collector.
        self.strategy = strategy(self.nodes, self.agents)

    def select(self) -> Expansion:
        """Returns the next expansion: its parent and its agent."""
        return self.strategy.choose()

    def open(self, expansion: Expansion) -> int:
        """Creates the node of an expansion; returns its id.

        Raises:
            ValueError: unknown agent, or a parent that is not the root or a scored node.
        """
        if expansion.agent not in self.agents:
            raise ValueError(f"agent = {expansion.agent!r}: choose one of {', '.join(self.agents)}")
        if not 0 <= expansion.parent < len(self.nodes):
            raise ValueError(f"parent = {expansion.parent}: no such node")
        parent = self.nodes[expansion.parent]
        if parent.state is not NodeState.SCORED:
            raise ValueError(
                f"parent = {parent.id}: it is {parent.state}, only scored nodes expand"
            )
        node = self._add(parent.id, parent.depth + 1, expansion.agent, NodeState.OPEN)
        parent.add_child(node.id)
        self.in_flight += 1
        self.strategy.begin(node)
        return node.id

    def close(self, node_id: int, score: float | None) -> None:
        """Records a node's score, from 0 to 1; None if verification failed technically.

        Raises:
            ValueError: the node is not open, or the score is out of range.
        """
        node = self.nodes[node_id]
        if node.state is not NodeState.OPEN:
            raise ValueError(f"node {node_id} is {node.state}; only an open node can be closed")
        if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
            raise ValueError(
                f"score = {score!r} of node {node_id}: give a value from 0 to 1, or None"
            )
        self.in_flight -= 1
        node.score = score
        node.state = NodeState.FAILED if score is None else NodeState.SCORED
        self.strategy.observe(node, score)

    def _add(
        self, parent: int | None, depth: int, agent: str | None, state: NodeState
    ) -> SearchNode:
        node = SearchNode(len(self.nodes), parent, depth, agent, state)
        self.nodes.append(node)
        return node
