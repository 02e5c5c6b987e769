"""Dr. GRPO (arXiv 2503.20783): the group advantage without division by the deviation.

    A_v = r_v - mean, over all nodes of one tree.
Easy and hard problems keep the scale of their rewards.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import Form, GroupContext

FORM = Form.CENTRED


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns centred rewards."""
    if len(rewards_N) == 0:
        return np.zeros_like(rewards_N)
    return rewards_N - rewards_N.mean()
