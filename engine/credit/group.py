"""Contexts of an advantage method, which accompany its rewards, and the hooks that it may have.

A method computes its advantages over one group at a time: all scored nodes of one tree. One that
compares nodes of different trees has a second hook, over all nodes of a step's update; one that
distinguishes tokens has a third, over the tokens of a group. Its module names in `NEEDS` the
columns that it reads (`engine.config.columns`). A method that compares a tree with earlier ones has
its hook in a memory, which outlives the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from engine.config.columns import NODE_COLUMNS, names_of
from engine.config.credit import CreditConfig
from engine.credit.columns import Columns
from engine.memory.protocol import Memory


@dataclass(frozen=True)
class GroupContext:
    """One group: all scored nodes of one tree, every agent, every depth, aligned with rewards."""

    columns: Columns = field(default_factory=dict)
    """Those of the method's `NEEDS`, (N,) each."""
    options: Any = None
    """The method's own `Options`; None if it has none."""
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Parts of the rewards by name, before their weights (`engine.credit.rewards.parts`)."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each part."""

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns a column.

        Raises:
            KeyError: the method does not name it in `NEEDS`.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}: name it in NEEDS of the method's module")
        return self.columns[name]


@dataclass(frozen=True)
class BatchContext(GroupContext):
    """All nodes of one step's update, aligned with advantages: the columns of its groups, tree
    after tree."""

    rewards_N: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Rewards, after shaping and penalties, from which the advantages of each tree follow."""
    trees_N: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Index of each node's tree among those of the update."""


class Form(StrEnum):
    """How an advantage follows from the rewards of its group, for the page of a node: `FORM` of a
    method's module. A method that compares more than a group has none."""

    STANDARDISED = "standardised"
    """(r - mean) / deviation; 0 if all are equal."""
    CENTRED = "centred"
    """r - mean."""


OverGroup = Callable[[np.ndarray, GroupContext], np.ndarray]
"""(rewards_N, context) -> advantages_N, both float64; every token of node v gets advantage v."""

OverTokens = Callable[[np.ndarray, np.ndarray, GroupContext], list[np.ndarray]]
"""(advantages_N, rewards_N, context) -> advantages of each node's output tokens, (L,) each, or (1,)
for one of all its tokens."""

RowColumns = Callable[[GroupContext], Mapping[str, np.ndarray]]
"""context -> numbers of each node for the loss, (N,) each, by the names of `MAKES`."""

Figures = Callable[[np.ndarray, np.ndarray, GroupContext], Mapping[str, np.ndarray]]
"""(rewards_N, advantages_N, context) -> numbers of each node that a run reports, (N,) each, by the
names of `FIGURES`; NaN where there is none."""

OverBatch = Callable[[np.ndarray, BatchContext], np.ndarray]
"""(advantages_N of all groups, context) -> the advantages of the update."""


class CreditMemory(Memory, Protocol):
    """Memory of a method whose advantages depend on earlier trees."""

    def over_group(self, rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
        """Returns advantages_N of a tree, as `OverGroup` does, and may take it in. Called once for
        each tree, filtered ones included, in the order of a step's trees."""
        ...


@dataclass(frozen=True)
class Advantage:
    """A method of `engine.credit.methods`: its hook over a group, and optionally others."""

    over_group: OverGroup
    over_batch: OverBatch | None = None
    memory: Callable[[CreditConfig], CreditMemory] | None = None
    """Returns an empty memory, whose hook over a group replaces `over_group` in a run."""
    over_tokens: OverTokens | None = None
    """Comes last, for each tree that is not filtered."""
    row_columns: RowColumns | None = None
    figures: Figures | None = None
    needs: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    charted: frozenset[str] = frozenset()
    """Names of the figures."""


def advantage_of(module: Any) -> Advantage:
    """Returns the method that a module holds: `over_group` and, if it has them, its other hooks,
    `NEEDS`, `MAKES` and `FIGURES`.

    Raises:
        ValueError: it holds none, or needs a column that does not exist.
    """
    if not callable(over_group := getattr(module, "over_group", None)):
        raise ValueError("has no function over_group(rewards_N, context)")
    needs, makes = names_of(module, "NEEDS"), names_of(module, "MAKES")
    if unknown := sorted(needs - set(NODE_COLUMNS)):
        raise ValueError(
            f"NEEDS has {', '.join(unknown)}; choose among {', '.join(sorted(NODE_COLUMNS))}"
        )
    row_columns, figures = getattr(module, "row_columns", None), getattr(module, "figures", None)
    charted = frozenset(getattr(module, "FIGURES", {}))
    if bool(charted) != callable(figures):
        raise ValueError(
            "FIGURES and the function figures(rewards_N, advantages_N, context) belong together"
        )
    if bool(makes) != callable(row_columns):
        raise ValueError("MAKES and the function row_columns(context) belong together")
    return Advantage(
        over_group,
        getattr(module, "over_batch", None),
        getattr(module, "memory", None),
        getattr(module, "over_tokens", None),
        row_columns,
        figures,
        needs,
        makes,
        charted,
    )


def standardised(rewards_N: np.ndarray, epsilon: float) -> np.ndarray:
    """Returns (r - mean) / (std + epsilon), std with ddof 1; 0 if rewards are equal, or one."""
    # Equal rewards are detected by comparison: their computed deviation may be a rounding error,
    # which the division would amplify.
    if len(rewards_N) < 2 or np.ptp(rewards_N) == 0.0:
        return np.zeros_like(rewards_N)
    return (rewards_N - rewards_N.mean()) / (rewards_N.std(ddof=1) + epsilon)
