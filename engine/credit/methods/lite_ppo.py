"""Lite PPO: centred in its tree, divided by the deviation of the step (arXiv 2508.08221).

    A_v = (r_v - mean of the tree) / (std + 1e-6), std with ddof 1, over all nodes of the step
The deviation is that of the rewards themselves, not of the centred ones, of all agents, over the
trees that the filter keeps: trees of nearly equal rewards are not blown up. A tree of equal rewards
gives 0, but counts in the deviation.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import BatchContext, GroupContext

EPSILON = 1e-6


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the centred rewards; exactly 0 if all are equal."""
    if np.ptp(rewards_N) == 0.0:
        return np.zeros_like(rewards_N)
    return rewards_N - rewards_N.mean()


def over_batch(advantages_N: np.ndarray, context: BatchContext) -> np.ndarray:
    """Returns them divided by the deviation of the step's rewards; 0 if these are equal."""
    if len(advantages_N) < 2 or np.ptp(context.rewards_N) == 0.0:
        return np.zeros_like(advantages_N)
    return advantages_N / (context.rewards_N.std(ddof=1) + EPSILON)
