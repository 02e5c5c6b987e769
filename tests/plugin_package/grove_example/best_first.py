"""Best first: repairs the best program so far; agents take turns."""

from __future__ import annotations

from engine.search.expansion import Expansion
from engine.search.node import NodeState, SearchNode
from engine.search.strategy import Growing


def strategy(growing: Growing) -> BestFirst:
    """Returns the strategy of a tree that holds only its root."""
    return BestFirst(growing)


class BestFirst:
    """The strategy of one tree."""

    def __init__(self, growing: Growing):
        self.growing = growing

    def choose(self) -> Expansion:
        scored = [node for node in self.growing.nodes if node.state is NodeState.SCORED]
        best = max(scored, key=lambda node: -1.0 if node.score is None else node.score)
        agent = self.growing.agents[len(self.growing.nodes) % len(self.growing.agents)]
        return Expansion(best.id, agent, best.depth + 1, {"levels": []})

    def begin(self, node: SearchNode) -> None:
        """Has nothing to take in: the tree holds the nodes."""

    def observe(self, node: SearchNode, score: float | None) -> None:
        """Has nothing to take in: the tree holds the scores."""
