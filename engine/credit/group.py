"""What an advantage method may know of a group beside its rewards."""

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


Advantage = Callable[[np.ndarray, GroupContext], np.ndarray]
"""(rewards_N, context) -> advantages_N, both float64; every token of node v gets advantage v."""
