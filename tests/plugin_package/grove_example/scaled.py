"""Centred rewards times a factor: A_v = scale (r_v - mean), over all nodes of one tree."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.credit.group import GroupContext


class Options(Settings):
    """Centred rewards times a factor."""

    scale: float = Field(2.0, gt=0, le=100)
    """Factor of all advantages."""


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the scaled, centred rewards."""
    return context.options.scale * (rewards_N - rewards_N.mean())
