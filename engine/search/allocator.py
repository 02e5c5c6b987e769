"""The socket of allocators: how many nodes each tree of a step may have.

The trees of a step share a budget of (trees x `search.nodes_per_tree`) nodes, which an allocator
divides among their problems. What it knows of the problems is its own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.search import SearchConfig
from engine.memory.protocol import Memory

Divide = Callable[[Sequence[int], SearchConfig, Any], list[int]]
"""(numbers of the problems in the training split, settings, memory or None) -> nodes of each
problem's tree, without the root."""


@dataclass(frozen=True)
class Allocator:
    """A rule of `engine.search.allocators.methods`."""

    divide: Divide
    memory: Callable[[SearchConfig], Memory] | None = None
    """Returns an empty memory, if the rule has one."""


def allocator_of(module: Any) -> Allocator:
    """Returns the rule that a module holds: `divide` and, if it has one, `memory`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(divide := getattr(module, "divide", None)):
        raise ValueError("has no function divide(problems, search, memory)")
    return Allocator(divide, getattr(module, "memory", None))
