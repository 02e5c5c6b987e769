"""Strategies: how a tree grows. Thompson sampling is the first.

A new strategy is one module in `methods`, named as here, and one line of this registry;
`search.strategy` then accepts its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.config.methods import Methods
from engine.config.search import SearchConfig
from engine.search.strategies.methods import discounted, thompson
from engine.search.strategy import Growing, StrategyKind, strategy_of
from engine.search.tree import SearchTree

STRATEGIES: Methods[StrategyKind] = Methods(
    "strategies",
    strategy_of,
    discounted,
    thompson,
)


def planted(
    agents: Sequence[str], search: SearchConfig, rng: np.random.Generator, memory: Any = None
) -> SearchTree:
    """Returns a tree that holds only its root and grows as `search.strategy` says. `memory` is the
    run's, if the strategy has one; without, the tree begins with an empty one."""
    kind = STRATEGIES[search.strategy]
    if memory is None and kind.memory:
        memory = kind.memory(search)
    return SearchTree(
        agents, lambda nodes, names: kind.make(Growing(nodes, names, search, rng, memory))
    )
