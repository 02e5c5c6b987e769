"""Learns again from the newest rows of no negative advantage: PPO with an optimizer of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic import Field

from engine.config.base import Settings
from engine.config.schema import RunConfig
from engine.memory.protocol import OnFork, SeenTree
from engine.policy.learner.objective import OptimizerGroup
from engine.policy.learner.rows import TrainingRow
from engine.training.compose.composer import ComposeContext, Composition, RowKind, Update


class Options(Settings):
    """Replay of the newest rows whose advantage is not negative."""

    rows: int = Field(4, ge=1, le=1000)
    """Rows that each policy keeps."""
    learning_rate: float = Field(1e-4, gt=0, le=1)
    """Peak learning rate of the replay."""


def memory(config: RunConfig) -> Kept:
    """Returns the empty memory of a run."""
    return Kept()


def compose(rows: Sequence[TrainingRow], context: ComposeContext) -> Composition:
    """Returns the whole batch, then what was kept before it."""
    kept = context.memory.rows.setdefault(context.owner, [])
    replayed = list(kept) if rows else []
    kept.extend(row for row in rows if row.advantage >= 0)
    del kept[: -context.options.rows]
    (agent,) = (one for one in context.config.agents if one.name == context.owner)
    rate = {"learning_rate": context.options.learning_rate}
    optimizer = OptimizerGroup("replay", agent.optimizer.model_copy(update=rate))
    replay = Update(replayed, RowKind.REPLAY, loss="ppo", optimizer=optimizer)
    return Composition([Update(rows), replay])


class Kept:
    """Rows by owner of the weights, oldest first."""

    on_fork = OnFork.LEAVE

    def __init__(self) -> None:
        self.rows: dict[str, list[TrainingRow]] = {}

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Has nothing to take in: `compose` keeps rows."""

    def state(self) -> dict[str, Any]:
        return {"rows": msgspec.to_builtins(self.rows)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows = msgspec.convert(state["rows"], dict[str, list[TrainingRow]])
