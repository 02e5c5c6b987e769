"""Uniform allocation: every tree has `search.nodes_per_tree` nodes."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config.search import SearchConfig


def divide(problems: Sequence[int], search: SearchConfig, memory: None) -> list[int]:
    """Returns the same number for every tree."""
    return [search.nodes_per_tree] * len(problems)
