"""Alternating allocation: half as many nodes for every second problem."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config.search import SearchConfig


def divide(problems: Sequence[int], search: SearchConfig, memory: None) -> list[int]:
    """Returns the nodes of each problem's tree: at least one, and no more than its share."""
    return [max(1, search.nodes_per_tree // (1 + number % 2)) for number in problems]
