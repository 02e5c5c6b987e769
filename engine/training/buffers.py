"""Per-agent buffers: each agent learns when it has enough nodes of its own.

Agents are chosen with different frequency, so their buffers fill at different speeds. Invariants:
- A tree's nodes enter and leave a buffer together (a tree is never split), and rows that are not
  taken stay for a later batch.
- Rows that are too stale to learn from never count towards a batch: they are dropped before the
  buffer is checked for one, and counted.
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
        """Policy versions that a row may be behind; None means any number."""
        self.version = 0
        """Version of the policy that will learn: its updates so far."""
        self.stale = 0
        """Rows dropped as stale since the last batch."""
        self._trees: list[list[TrainingRow]] = []

    def add_tree(self, rows: Sequence[TrainingRow]) -> None:
        """Adds the agent's nodes of one tree; `rows` may be empty."""
        if rows:
            self._trees.append(list(rows))

    def take(self) -> list[TrainingRow]:
        """Removes and returns the rows of the oldest trees, if the buffer fills a batch; otherwise
        returns an empty list.

        Takes up to `max_batch_nodes` rows, or all without it. Takes at least `batch_nodes` and
        splits no tree, so the last tree may exceed the limit; the rest stays for a later batch.
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

    def record_update(self, version: int) -> int:
        """Records the version that an update produced; returns how many rows were too stale for
        its batch."""
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
