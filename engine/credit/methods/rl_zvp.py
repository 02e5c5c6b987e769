"""RL-ZVP: trees of zero variance are learned from by entropy (arXiv 2509.21880, eq. 5).

    all nodes right: A_vt = alpha H_vt
    all nodes wrong: A_vt = -alpha (max over the node's tokens of H - H_vt)
    otherwise: GRPO
H is the entropy of the learner's distribution, which only the learner knows: here a tree's nodes
get a mark in the column `zero_variance` (1, -1 or 0), from which `loss.policy = "zvp"` forms the
advantages. Right and wrong are raw scores of 1 and 0; a tree of equal fractions is neither, and has
advantages of 0. `credit.dynamic_filter`, which would drop these trees, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from engine.config.misfits import Misfit, filtered_trees
from engine.credit.group import GroupContext
from engine.credit.methods import grpo

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

NEEDS = {"scores"}
MAKES = {"zero_variance"}


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of the trees that the method is about."""
    yield from filtered_trees(config, "credit.advantage", "learns from these by entropy")


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the advantages of GRPO; 0 in a tree of zero variance."""
    if mark(context["scores"]):
        return np.zeros_like(rewards_N)
    return grpo.over_group(rewards_N, context)


def row_columns(context: GroupContext) -> dict[str, np.ndarray]:
    """Returns the marks of the tree's nodes."""
    scores_N = context["scores"]
    return {"zero_variance": np.full(len(scores_N), mark(scores_N))}


def mark(scores_N: np.ndarray) -> float:
    """Returns 1 if all nodes are right, -1 if all are wrong, otherwise 0."""
    if np.all(scores_N >= 1.0):
        return 1.0
    return -1.0 if np.all(scores_N <= 0.0) else 0.0
