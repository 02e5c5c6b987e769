"""Per-agent buffers: each agent learns when it has enough nodes of its own.

Agents are picked with different frequency, so their buffers fill at different speed. Invariants:
a tree's nodes enter and leave a buffer together (a tree is never split), and what does not fill
a batch is kept for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.policy.rows import TrainingRow


class AgentBuffer:
    """Rows of one agent, tree by tree, oldest first."""

    def __init__(self, batch_nodes: int):
        self.batch_nodes = batch_nodes
        self._trees: list[list[TrainingRow]] = []

    def add_tree(self, rows: Sequence[TrainingRow]) -> None:
        """The agent's nodes of one tree; none is fine."""
        if rows:
            self._trees.append(list(rows))

    def take(self) -> list[TrainingRow]:
        """Everything, if it fills a batch; otherwise nothing, and it stays."""
        if sum(map(len, self._trees)) < self.batch_nodes:
            return []
        rows = [row for tree in self._trees for row in tree]
        self._trees = []
        return rows

    def state(self) -> list[list[dict[str, Any]]]:
        return msgspec.to_builtins(self._trees)

    def load_state(self, state: list[list[dict[str, Any]]]) -> None:
        self._trees = msgspec.convert(state, list[list[TrainingRow]])
