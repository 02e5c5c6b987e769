"""Path-level group advantage over a whole tree (arXiv 2604.14564; mars2.md, section 6).

    A_v = (r̂_v - mean) / (std + 1e-9), std with ddof 1, over all nodes of one tree.
A tree of equal rewards, or of one node, gives 0.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import GroupContext

EPSILON = 1e-9


def advantages(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Normalised rewards: mean 0, and deviation 1 unless all are equal."""
    # Equal rewards are asked for by comparison: their computed deviation may be a rounding
    # error, which the division would blow up.
    if len(rewards_N) < 2 or np.ptp(rewards_N) == 0.0:
        return np.zeros_like(rewards_N)
    return (rewards_N - rewards_N.mean()) / (rewards_N.std(ddof=1) + EPSILON)
