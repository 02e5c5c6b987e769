"""Credit of one whole tree: raw score -> shaping -> overlong -> advantage (mars2.md, 5 and 6).

Invariant: a node without a score takes no part: it is in no baseline, no mean and no filter, and
its own credit is NaN, which no loss survives unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import CreditConfig
from engine.credit import ADVANTAGES
from engine.credit.filters import informative
from engine.credit.group import GroupContext
from engine.credit.overlong import overlong_penalty
from engine.credit.shaping import ROOT, tree_shaping


@dataclass(frozen=True)
class TreeRecord:
    """The closed nodes of one tree as parallel columns, in any order, without the root."""

    node_ids: Sequence[int]
    parents: Sequence[int]
    """Node ids; 0 is the root."""
    agents: Sequence[str]
    scores: Sequence[float | None]
    """Raw scores; None where verification failed technically."""
    lengths: Sequence[int]
    """Output tokens."""


@dataclass(frozen=True)
class Credit:
    """Aligned with the record's columns; NaN at nodes without a score."""

    shaped_N: np.ndarray
    """Reward after shaping and overlong penalty: what the advantage is formed from."""
    advantages_N: np.ndarray
    filtered: bool
    """The tree is to be left out before any forward pass."""


def assign_credit(
    tree: TreeRecord, config: CreditConfig, max_new_tokens: int | Sequence[int]
) -> Credit:
    """Credit every scored node of a tree.

    `max_new_tokens` is the limit of the overlong penalty, one for all nodes or one for each.
    A tree without any score is filtered whatever the settings: there is nothing to learn.

    Raises:
        ValueError: columns of different lengths, or a scored node whose parent is neither the
            root nor a scored node of the record.
    """
    count = len(tree.node_ids)
    columns = (tree.parents, tree.agents, tree.scores, tree.lengths)
    if any(len(column) != count for column in columns):
        raise ValueError(f"columns of {[count, *map(len, columns)]} nodes: give one value per node")
    scored = [row for row in range(count) if tree.scores[row] is not None]
    shaped_N, advantages_N = np.full(count, np.nan), np.full(count, np.nan)
    if not scored:
        return Credit(shaped_N, advantages_N, filtered=True)

    scores = np.array([tree.scores[row] for row in scored], dtype=np.float64)
    context = GroupContext(tuple(tree.agents[row] for row in scored), _positions(tree, scored))
    limits = np.broadcast_to(np.asarray(max_new_tokens), count)[scored]
    lengths = np.array([tree.lengths[row] for row in scored])

    rewards = tree_shaping(scores, context.parents_N, config.shaping_gamma, config.shaping_lambda)
    rewards = rewards + overlong_penalty(
        lengths, limits, config.overlong_buffer_tokens, config.overlong_factor
    )
    shaped_N[scored] = rewards
    advantages_N[scored] = ADVANTAGES[config.advantage](rewards, context)
    return Credit(shaped_N, advantages_N, config.dynamic_filter and not informative(scores))


def _positions(tree: TreeRecord, scored: list[int]) -> np.ndarray:
    """Each scored node's parent as a position among the scored nodes, -1 for the root."""
    position = {tree.node_ids[row]: place for place, row in enumerate(scored)}
    position[0] = ROOT
    try:
        return np.array([position[tree.parents[row]] for row in scored], dtype=np.int64)
    except KeyError as error:
        raise ValueError(
            f"parent {error.args[0]}: a scored node hangs from a node that has no score; "
            "only scored nodes may be expanded"
        ) from None
