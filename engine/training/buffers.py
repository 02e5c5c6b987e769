"""Per-agent buffers: each agent learns when it has enough nodes of its own.

Agents are picked with different frequency, so their buffers fill at different speed. Invariants:
a tree's nodes enter and leave a buffer together (a tree is never split), and what is
not taken is kept for a later batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.policy.rows import TrainingRow


class AgentBuffer:
    """Rows of one agent, tree by tree, oldest first."""

    def __init__(self, batch_nodes: int, max_batch_nodes: int | None = None):
        self.batch_nodes = batch_nodes
        self.max_batch_nodes = max_batch_nodes
        self._trees: list[list[TrainingRow]] = []

    def add_tree(self, rows: Sequence[TrainingRow]) -> None:
        """The agent's nodes of one tree; none is fine."""
        if rows:
            self._trees.append(list(rows))

    def take(self) -> list[TrainingRow]:
        """The oldest trees, if all together fill a batch; otherwise nothing, and they stay.

        Up to `max_batch_nodes`, or everything. At least a batch is taken, and no tree is split, so
        the last one may go over it; what is left is a later batch's.
        """
        waiting = sum(map(len, self._trees))
        limit = waiting if self.max_batch_nodes is None else self.max_batch_nodes
        rows: list[TrainingRow] = []
        if waiting < self.batch_nodes:
            return rows
        while self._trees and (
            len(rows) < self.batch_nodes or len(rows) + len(self._trees[0]) <= limit
        ):
            rows += self._trees.pop(0)
        return rows

    def state(self) -> list[list[dict[str, Any]]]:
        return msgspec.to_builtins(self._trees)

    def load_state(self, state: list[list[dict[str, Any]]]) -> None:
        self._trees = msgspec.convert(state, list[list[TrainingRow]])
