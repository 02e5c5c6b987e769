"""REINFORCE leave-one-out (Kool et al. 2019; Ahmadian et al., arXiv 2402.14740).

    A_v = r_v - mean(r of the other nodes of the tree).
A tree of one node has no others to compare with and gives 0.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import GroupContext


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns each reward minus the mean of the others."""
    count = len(rewards_N)
    if count < 2:
        return np.zeros_like(rewards_N)
    return rewards_N - (rewards_N.sum() - rewards_N) / (count - 1)
