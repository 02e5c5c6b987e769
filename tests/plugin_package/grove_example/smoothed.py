"""Rewards less a moving average of the rewards of earlier trees, as REINFORCE's baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.config.credit import CreditConfig
from engine.config.methods import Figure
from engine.config.misfits import Misfit, filtered_trees
from engine.config.schema import RunConfig
from engine.credit.group import GroupContext
from engine.memory.protocol import OnFork, SeenTree

FIGURES = {"baseline": Figure("Moving average of the rewards", unit="reward", section="Learning")}


class Options(Settings):
    """Rewards less a moving average."""

    decay: float = Field(0.9, ge=0, lt=1)
    """Weight of the earlier trees."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of trees that are compared with earlier ones."""
    yield from filtered_trees(config, "credit.advantage", "compares every tree with earlier ones")


def memory(credit: CreditConfig) -> Average:
    """Returns the memory of a run that begins."""
    return Average(credit.options("advantage").decay)


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the advantages of a tree by itself: nothing was before it."""
    return Average(context.options.decay).over_group(rewards_N, context)


def figures(
    rewards_N: np.ndarray, advantages_N: np.ndarray, context: GroupContext
) -> dict[str, np.ndarray]:
    """Returns what every node was compared with."""
    return {"baseline": rewards_N - advantages_N}


class Average:
    """The moving average of the trees' mean rewards."""

    on_fork = OnFork.KEEP

    def __init__(self, decay: float):
        self.decay = decay
        self.mean = 0.0

    def over_group(self, rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
        advantages_N = rewards_N - self.mean
        self.mean = self.decay * self.mean + (1 - self.decay) * float(rewards_N.mean())
        return advantages_N

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Has nothing to take in: credit has moved the average."""

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.mean = state["mean"]
