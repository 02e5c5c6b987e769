"""Group relative advantage (GRPO; DeepSeekMath, arXiv 2402.03300, outcome supervision).

    A_v = (r_v - mean) / (std + 1e-6), std with ddof 1, over the answers to one problem.
Shared with mars2: the normalisation, and the group, which is all nodes of one tree. Different:
in the paper the group is flat, G independent answers to the problem, and r is the raw reward.
Both depend on settings, not on this module: `search.max_depth = 1` makes every node a child of the
root, and `credit.shaping_gamma = 0` keeps raw rewards; the recipe `grpo` sets both. On a deeper
tree this is mars2 without its shaping. The epsilon is that of the common implementations.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import Form, GroupContext, standardised

FORM = Form.STANDARDISED
EPSILON = 1e-6


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns normalised rewards: mean 0, and deviation 1 unless all are equal."""
    return standardised(rewards_N, EPSILON)
