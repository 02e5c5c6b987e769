"""When a tree may expand: a budget of nodes, and a limit on how many are open at once.

Invariant: a tree never holds more than `nodes_per_tree` nodes besides its root, failed ones
included, nor more than `nodes_in_flight` open ones. There is no barrier: whoever closes a node
claims again, and gets as many expansions as there is room for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.search.tree import Expansion, SearchTree


@dataclass(frozen=True)
class TreeBudget:
    """Limits that every tree of a step shares; it holds no state of its own."""

    nodes_per_tree: int
    nodes_in_flight: int = 1

    def __post_init__(self) -> None:
        if self.nodes_per_tree < 1 or self.nodes_in_flight < 1:
            raise ValueError(
                f"nodes_per_tree = {self.nodes_per_tree}, "
                f"nodes_in_flight = {self.nodes_in_flight}: both must be at least 1"
            )

    def claim(self, tree: SearchTree) -> list[Expansion]:
        """Select and open as many expansions as fit now; each carries its node's id."""
        claimed = []
        for _ in range(self.room(tree)):
            expansion = tree.select()
            claimed.append(replace(expansion, node=tree.open(expansion)))
        return claimed

    def room(self, tree: SearchTree) -> int:
        """Expansions that `claim` would open."""
        unspent = self.nodes_per_tree - (len(tree.nodes) - 1)
        return max(0, min(self.nodes_in_flight - tree.in_flight, unspent))

    def is_spent(self, tree: SearchTree) -> bool:
        """Whether nothing is left to open and nothing is under way."""
        return tree.in_flight == 0 and self.room(tree) == 0
