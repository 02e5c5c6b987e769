"""REINFORCE++: global advantage normalisation (arXiv 2501.03262).

    A_v = (r_v - mean) / sqrt(max(var, 1e-8)), over all tokens of a step, var with ddof 0.
No group is normalised by itself: a tree's own mean and deviation would bias its advantage. A
node is weighted by its number of tokens. The step's trees are those that the filter keeps; a tree
of equal scores carries information here, so this method needs `credit.dynamic_filter = false`.
The paper's other variant, group mean first, is this second hook after dr_grpo's first one.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import BatchContext, GroupContext

NEEDS = {"lengths"}
MIN_VARIANCE = 1e-8


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
