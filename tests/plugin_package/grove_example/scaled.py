"""Centred rewards, those of first attempts times a factor: A_v = scale (r_v - mean) at depth 1."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.credit.group import GroupContext

NEEDS = {"depths"}


class Options(Settings):
    """Centred rewards, those of first attempts times a factor."""

    scale: float = Field(2.0, gt=0, le=100)
    """Factor of the advantages of first attempts; repairs have 1."""


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the centred rewards, scaled at depth 1."""
    factors_N = np.where(context["depths"] == 1, context.options.scale, 1.0)
    return factors_N * (rewards_N - rewards_N.mean())
