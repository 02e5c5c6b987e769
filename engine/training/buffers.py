"""Per-agent buffers: each agent learns when it has enough nodes of its own.

Agents are picked with different frequency, so their buffers fill at different speed. Invariants:
- A tree's nodes enter and leave a buffer together (a tree is never split), and what is not taken is
  kept for a later batch.
- What is too old to be learned from never counts towards a batch: it leaves before it is looked
  whether there is one, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.policy.learner.rows import TrainingRow


class AgentBuffer:
    """Rows of one agent, tree by tree, oldest first."""

    def __init__(
        self, batch_nodes: int, max_batch_nodes: int | None = None, max_staleness: int | None = None
    ):
        self.batch_nodes = batch_nodes
        self.max_batch_nodes = max_batch_nodes
        self.max_staleness = max_staleness
        """Policy versions that a row may be behind; None is any number."""
        self.version = 0
        """The policy that will learn: its updates so far."""
        self.stale = 0
        """Rows that left as too old since the last batch."""
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
        self._drop_stale()
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

    def learned(self, version: int) -> int:
        """A batch was learned from, which made this version; how many rows were too old for it."""
        stale, self.stale, self.version = self.stale, 0, version
        return stale

    def state(self) -> dict[str, Any]:
        trees = msgspec.to_builtins(self._trees)
        return {"version": self.version, "stale": self.stale, "trees": trees}

    def load_state(self, state: dict[str, Any]) -> None:
        self.version, self.stale = state["version"], state["stale"]
        self._trees = msgspec.convert(state["trees"], list[list[TrainingRow]])

    def _drop_stale(self) -> None:
        if self.max_staleness is None:
            return
        oldest = self.version - self.max_staleness
        fresh = [[row for row in tree if row.policy_version >= oldest] for tree in self._trees]
        self.stale += sum(map(len, self._trees)) - sum(map(len, fresh))
        self._trees = [tree for tree in fresh if tree]
