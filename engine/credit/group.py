"""Contexts of an advantage method, which accompany its rewards, and the two hooks that it may have.

A method computes its advantages over one group at a time: all scored nodes of one tree. One that
compares nodes of different trees has a second hook, over all nodes of a step's update. Data that a
new method needs is one more column of a context; no other method changes. A method that compares a
tree with earlier ones has its hook in a memory, which outlives the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from engine.config.credit import CreditConfig
from engine.memory.protocol import Memory


def _nothing() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True)
class GroupContext:
    """One group: all scored nodes of one tree, every agent, every depth, aligned with rewards."""

    agents_N: tuple[str, ...]
    parents_N: np.ndarray
    """Index of each node's parent within the group; -1 for the root."""
    scores_N: np.ndarray = field(default_factory=_nothing)
    """Raw scores, before shaping and penalties; 1 is right."""
    lengths_N: np.ndarray = field(default_factory=_nothing)
    """Output tokens."""
    limits_N: np.ndarray = field(default_factory=_nothing)
    """Most output tokens that each node's agent may write."""
    options: Any = None
    """The method's own `Options`; None if it has none."""
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Parts of the rewards by name, before their weights (`engine.credit.rewards.parts`)."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each part."""


@dataclass(frozen=True)
class BatchContext:
    """All nodes of one step's update, tree after tree, aligned with advantages."""

    lengths_N: np.ndarray
    """Output tokens."""
    options: Any = None
    """As in `GroupContext`."""


class Form(StrEnum):
    """How an advantage follows from the rewards of its group, for the page of a node: `FORM` of a
    method's module. A method that compares more than a group has none."""

    STANDARDISED = "standardised"
    """(r - mean) / deviation; 0 if all are equal."""
    CENTRED = "centred"
    """r - mean."""


OverGroup = Callable[[np.ndarray, GroupContext], np.ndarray]
"""(rewards_N, context) -> advantages_N, both float64; every token of node v gets advantage v."""

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
    """A method of `engine.credit.methods`: its hook over a group, and optionally over a batch."""

    over_group: OverGroup
    over_batch: OverBatch | None = None
    memory: Callable[[CreditConfig], CreditMemory] | None = None
    """Returns an empty memory, whose hook over a group replaces `over_group` in a run."""


def advantage_of(module: Any) -> Advantage:
    """Returns the method that a module holds: `over_group` and, if it has them, `over_batch` and
    `memory`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(over_group := getattr(module, "over_group", None)):
        raise ValueError("has no function over_group(rewards_N, context)")
    return Advantage(
        over_group, getattr(module, "over_batch", None), getattr(module, "memory", None)
    )


def standardised(rewards_N: np.ndarray, epsilon: float) -> np.ndarray:
    """Returns (r - mean) / (std + epsilon), std with ddof 1; 0 if rewards are equal, or one."""
    # Equal rewards are detected by comparison: their computed deviation may be a rounding error,
    # which the division would amplify.
    if len(rewards_N) < 2 or np.ptp(rewards_N) == 0.0:
        return np.zeros_like(rewards_N)
    return (rewards_N - rewards_N.mean()) / (rewards_N.std(ddof=1) + epsilon)
