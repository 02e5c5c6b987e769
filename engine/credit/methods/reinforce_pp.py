"""REINFORCE++: global advantage normalisation (arXiv 2501.03262).

    A_v = (r_v - mean) / sqrt(max(var, 1e-8)), over all tokens of a step, var with ddof 0.
No group is normalised by itself: a tree's own mean and deviation would bias its advantage. A
node is weighted by its number of tokens. A tree of equal scores carries information here, so
`credit.dynamic_filter`, which would drop it, is refused.
The paper's other variant, group mean first, is this second hook after dr_grpo's first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from engine.config.misfits import Misfit, filtered_trees
from engine.credit.group import BatchContext, GroupContext

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

NEEDS = {"lengths"}
MIN_VARIANCE = 1e-8


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of trees that are compared with others."""
    yield from filtered_trees(config, "credit.advantage", "compares every tree with the others")


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the rewards unchanged."""
    return rewards_N


def over_batch(advantages_N: np.ndarray, context: BatchContext) -> np.ndarray:
    """Normalises over the step: mean 0 and deviation 1 over tokens; 0 if all are equal."""
    if len(advantages_N) == 0 or np.ptp(advantages_N) == 0.0:
        return np.zeros_like(advantages_N)
    lengths_N = context["lengths"]
    mean = np.average(advantages_N, weights=lengths_N)
    variance = np.average((advantages_N - mean) ** 2, weights=lengths_N)
    return (advantages_N - mean) / np.sqrt(max(variance, MIN_VARIANCE))
