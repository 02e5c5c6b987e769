"""ADORA: advantages weighted by whether right answers are the longer ones (ADORA, 2025).

    A_v = w (r_v - mean) / (std + 1e-6), std with ddof 1, over all nodes of one tree
    w = 1 if max(length of right nodes) > mean(length of wrong nodes below their limit)
    w = `credit.adora.weight` otherwise
From the code of the authors, github.com/ShadeCloak/ADORA, its variant for language models: a side
without nodes counts as minus infinity on either side of the comparison, so that a tree without a
right node has the small weight, and one without a wrong node the weight 1, times advantages of 0.
Their wrong answers count up to 4054 of 4096 tokens; here up to the token before the limit.

Right and wrong are raw scores, r the shaped rewards. Lengths are compared over all agents and
depths of a tree, in tokens, which assumes that agents share a vocabulary.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.credit.group import GroupContext, standardised

NEEDS = {"scores", "lengths", "limits"}
EPSILON = 1e-6


class Options(Settings):
    """ADORA."""

    weight: float = Field(0.1, ge=0, le=1)
    """Weight of the advantages of a tree whose right answers are not the longer ones."""


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the advantages of GRPO times the tree's weight."""
    weight = 1.0 if _right_is_longer(context) else context.options.weight
    return weight * standardised(rewards_N, EPSILON)


def _right_is_longer(context: GroupContext) -> bool:
    lengths_N = context["lengths"]
    right_N = context["scores"] >= 1.0
    ended_N = ~right_N & (lengths_N < context["limits"])
    longest = float(lengths_N[right_N].max()) if right_N.any() else -np.inf
    usual = float(lengths_N[ended_N].mean()) if ended_N.any() else -np.inf
    return longest > usual
