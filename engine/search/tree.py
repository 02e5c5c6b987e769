"""The shared search tree: its nodes, and the rules that every strategy obeys.

How it grows is its strategy's (`engine.search.strategies`). Invariants:
- Nodes are numbered in the order of creation; node 0 is the root, the problem statement.
- Only the root and scored nodes are expanded; open and failed nodes never are.
- A strategy receives every node that it chose once when it opens, and once when it closes. It
  never sees the turns that follow such a node within one episode: an expansion plays until it has a
  score, which is one observation however many turns it took.
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
        """Number of expansions whose score is still to come."""
        self.expansions = 0
        """Number of expansions so far; the turns that follow one in its episode are no others."""
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
            raise ValueError(
                f"parent = {expansion.parent}: no such node; give one of 0 to {len(self.nodes) - 1}"
            )
        parent = self.nodes[expansion.parent]
        if parent.state is not NodeState.SCORED:
            raise ValueError(
                f"parent = {parent.id}: it is {parent.state}, only scored nodes expand"
            )
        node = self._add(parent.id, parent.depth + 1, expansion.agent, NodeState.OPEN)
        parent.add_child(node.id)
        self.in_flight += 1
        self.expansions += 1
        self.strategy.begin(node)
        return node.id

    def go_on(self, node_id: int) -> Expansion:
        """Opens the turn that follows an open node in its episode, for the same agent; both close
        together, when the episode has its score.

        Raises:
            ValueError: the node is not open, or another turn follows it already.
        """
        node = self._open_leaf(node_id, "go on")
        turn = self._add(node.id, node.depth + 1, node.agent, NodeState.OPEN)
        node.add_child(turn.id)
        assert node.agent is not None
        return Expansion(node.id, node.agent, turn.depth, {"levels": []}, turn.id)

    def close(self, node_id: int, score: float | None, final: bool = False) -> None:
        """Records a node's score, from 0 to 1, and that of all turns before it in its episode; None
        if verification failed technically. Nothing can follow a `final` node.

        Raises:
            ValueError: the node is not the last open one of its episode, or the score is out of
                range.
        """
        node = self._open_leaf(node_id, "be closed")
        if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
            raise ValueError(
                f"score = {score!r} of node {node_id}: give a value from 0 to 1, or None"
            )
        self.in_flight -= 1
        node.score = score
        node.state = _closed(score, final)
        # Only the turns of one episode are open in one line: others expand closed nodes alone.
        while (above := self.nodes[node.parent or 0]).state is NodeState.OPEN:
            node = above
            node.score, node.state = score, _closed(score, final=False)
        self.strategy.observe(node, score)

    def _open_leaf(self, node_id: int, what: str) -> SearchNode:
        node = self.nodes[node_id]
        if node.state is not NodeState.OPEN:
            raise ValueError(f"node {node_id} is {node.state}; only an open node can {what}")
        if node.children:
            raise ValueError(
                f"node {node_id}: turn {node.children[0]} follows it; only the last turn of an "
                f"episode can {what}"
            )
        return node

    def _add(
        self, parent: int | None, depth: int, agent: str | None, state: NodeState
    ) -> SearchNode:
        node = SearchNode(len(self.nodes), parent, depth, agent, state)
        self.nodes.append(node)
        return node


def _closed(score: float | None, final: bool) -> NodeState:
    if score is None:
        return NodeState.FAILED
    return NodeState.FINAL if final else NodeState.SCORED
