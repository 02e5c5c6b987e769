"""One node of a search tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class NodeState(StrEnum):
    """State of a node between the choice of its parent and its score."""

    OPEN = "open"
    """Being generated or verified: no descent enters it."""
    SCORED = "scored"
    """Closed with a score; it competes."""
    FINAL = "final"
    """Closed with a score, and nothing can follow: its episode ended there. It never expands."""
    FAILED = "failed"
    """Closed without a score, because verification failed technically; it never competes."""


@dataclass(slots=True)
class SearchNode:
    """A node; node 0 is the root, which has no agent and no score, and may always be expanded."""

    id: int
    parent: int | None
    depth: int
    agent: str | None
    state: NodeState = NodeState.OPEN
    score: float | None = None
    _children: list[int] | None = None

    @property
    def children(self) -> Sequence[int]:
        """Ids of all children in any state, in the order of creation."""
        return self._children or ()

    def add_child(self, node_id: int) -> None:
        """Appends a new child."""
        # Most nodes stay leaves: a list for each is one more object for the garbage collector.
        if self._children is None:
            self._children = []
        self._children.append(node_id)
