"""Path-level group advantage over a whole tree (arXiv 2604.14564; docs/algorithm.md, section 6).

    A_v = (r̂_v - mean) / (std + 1e-9), std with ddof 1, over all nodes of one tree.
r̂ are the shaped rewards of all agents and all depths. A tree of equal rewards, or of one node,
gives 0.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import Form, GroupContext, standardised

FORM = Form.STANDARDISED
EPSILON = 1e-9


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns normalised rewards: mean 0, and deviation 1 unless all are equal."""
    return standardised(rewards_N, EPSILON)
