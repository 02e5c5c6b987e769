"""What an advantage method may know beside its rewards, and the two hooks that it may have.

A method forms its advantages over one group at a time: all scored nodes of one tree. One that
compares nodes of different trees has a second hook, over all nodes of a step that are learned
from. What a later method needs to know is one more column of a context; no other method changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GroupContext:
    """One group: all scored nodes of one tree, every agent, every depth, aligned with rewards."""

    agents_N: tuple[str, ...]
    parents_N: np.ndarray
    """Position of each node's parent within the group; -1 for the root."""


@dataclass(frozen=True)
class BatchContext:
    """All nodes of one step that are learned from, tree after tree, aligned with advantages."""

    lengths_N: np.ndarray
    """Output tokens."""


OverGroup = Callable[[np.ndarray, GroupContext], np.ndarray]
"""(rewards_N, context) -> advantages_N, both float64; every token of node v gets advantage v."""

OverBatch = Callable[[np.ndarray, BatchContext], np.ndarray]
"""(advantages_N of all groups, context) -> the advantages that are learned from."""


@dataclass(frozen=True)
class Advantage:
    """A method of `engine.credit.methods`: its hook over a group, and perhaps over a batch."""

    over_group: OverGroup
    over_batch: OverBatch | None = None


def standardised(rewards_N: np.ndarray, epsilon: float) -> np.ndarray:
    """(r - mean) / (std + epsilon), std with ddof 1; 0 for equal rewards, or a single one."""
    # Equal rewards are asked for by comparison: their computed deviation may be a rounding
    # error, which the division would blow up.
    if len(rewards_N) < 2 or np.ptp(rewards_N) == 0.0:
        return np.zeros_like(rewards_N)
    return (rewards_N - rewards_N.mean()) / (rewards_N.std(ddof=1) + epsilon)
