"""The socket of strategies: how a tree grows, apart from the tree itself.

The tree holds the nodes, and refuses impossible steps; its strategy chooses the next expansion and
receives every node that opens and closes. What a strategy knows of one tree ends with that tree.
What it is to know of earlier trees is its memory (`engine.memory.protocol`), one for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.config.search import SearchConfig
from engine.memory.protocol import Memory
from engine.search.expansion import Expansion
from engine.search.node import SearchNode


class Strategy(Protocol):
    """The growth of one tree."""

    def choose(self) -> Expansion:
        """Returns the next expansion, of the root or of a scored node; changes nothing but the
        generator of random numbers."""
        ...

    def begin(self, node: SearchNode) -> None:
        """Takes in that a node was opened; `observe` of the same node always follows."""
        ...

    def observe(self, node: SearchNode, score: float | None) -> None:
        """Takes in the score of a node that was closed, 0 to 1; None if verification failed
        technically."""
        ...


@dataclass(frozen=True)
class Growing:
    """What a strategy is made of: one tree, and the settings and memory of its run."""

    nodes: Sequence[SearchNode]
    """The tree's nodes by id; it holds the root, and grows."""
    agents: tuple[str, ...]
    search: SearchConfig
    rng: np.random.Generator
    """Random numbers of this tree alone."""
    memory: Any = None
    """The run's memory of this strategy, if its kind has one."""


@dataclass(frozen=True)
class StrategyKind:
    """A strategy of `engine.search.strategies.methods`."""

    make: Callable[[Growing], Strategy]
    """Returns the strategy of a tree that holds only its root."""
    memory: Callable[[SearchConfig], Memory] | None = None
    """Returns an empty memory, if the strategy has one."""


def strategy_of(module: Any) -> StrategyKind:
    """Returns the strategy that a module holds: `strategy` and, if it has one, `memory`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(make := getattr(module, "strategy", None)):
        raise ValueError("has no function strategy(growing)")
    return StrategyKind(make, getattr(module, "memory", None))
