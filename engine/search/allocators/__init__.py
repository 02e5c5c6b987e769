"""Allocators: how many nodes each tree of a step may have.

A new allocator is one module in `methods`, named as here, and one line of this registry;
`search.allocator` then accepts its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.config.methods import Methods
from engine.config.search import SearchConfig
from engine.search.allocator import Allocator, allocator_of
from engine.search.allocators.methods import knapsack, uniform

ALLOCATORS: Methods[Allocator] = Methods(
    "allocators",
    allocator_of,
    knapsack,
    uniform,
)


def allocated(problems: Sequence[int], search: SearchConfig, memory: Any = None) -> list[int]:
    """Returns the nodes of each problem's tree, by `search.allocator`.

    Raises:
        ValueError: the allocator leaves a tree without a node, or spends more than its budget.
    """
    nodes_P = ALLOCATORS[search.allocator].divide(problems, search, memory)
    return within_budget(search.allocator, nodes_P, len(problems), search.nodes_per_tree)


def within_budget(name: str, nodes_P: list[int], trees: int, nodes_per_tree: int) -> list[int]:
    """Returns what the allocator of this name gave the trees.

    Raises:
        ValueError: it does not fit them.
    """
    budget = trees * nodes_per_tree
    if len(nodes_P) != trees or min(nodes_P, default=1) < 1 or sum(nodes_P) > budget:
        raise ValueError(
            f"search.allocator = '{name}' gives {trees} trees {nodes_P} nodes; each tree needs 1 "
            f"or more, and all together may have {budget}: correct the allocator"
        )
    return nodes_P
