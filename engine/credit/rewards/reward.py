"""What a module of rewards holds: a score of one program, a part of the rewards of a tree, or both.

    reward = shaped(score times all gates) + sum over the parts of weight times part
`credit.score` names the score. It alone is shaped, and search and filters see it. A part joins by
its options: `credit.NAME.weight` adds it to the sum, `credit.NAME.gate` multiplies the score by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.config.credit import CreditConfig
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.outcome import Outcome

Score = Callable[[Outcome, Any], float]
"""(outcome, options) -> raw score, from 0 to 1; 1 is right."""
Part = Callable[[Nodes, Any], np.ndarray]
"""(nodes, options) -> values_N, float64, before the weight; NaN where a node has no value."""


class PartOptions(Settings):
    """Options of every part; those of a part extend them."""

    weight: float = Field(0.0, ge=-100, le=100)
    """Weight of the part in the sum of the reward; 0 leaves it out."""
    gate: bool = False
    """Multiply the score by the part, which must then be from 0 to 1, before shaping."""


@dataclass(frozen=True)
class PartInUse:
    """A part with the weight and options that the settings of a run give it."""

    weight: float
    gate: bool
    options: Any


InUse = Callable[[CreditConfig], PartInUse | None]
"""(settings) -> how a run uses the part; None if it does not."""


@dataclass(frozen=True)
class Reward:
    """A method of `engine.credit.rewards`."""

    score: Score | None
    """None for what needs more than the outcome of one program: `credit.score` cannot name it."""
    part: Part
    in_use: InUse | None = None
    """Of a part whose settings are fields of the section; None: they are `PartOptions`."""

    @property
    def selectable(self) -> bool:
        """Whether `credit.score` may name it."""
        return self.score is not None


def reward_of(module: Any) -> Reward:
    """Returns the reward that a module holds: `score`, `part` or both.

    Raises:
        ValueError: it holds neither, or a part without a weight.
    """
    score, part = getattr(module, "score", None), getattr(module, "part", None)
    if not callable(part):
        part = _by_score(score) if callable(score) else None
    if part is None:
        raise ValueError("has neither score(outcome, options) nor part(nodes, options)")
    in_use, options = getattr(module, "in_use", None), getattr(module, "Options", None)
    if not callable(score) and in_use is None and not _has_weight(options):
        raise ValueError("Options of a part extend engine.credit.rewards.reward.PartOptions")
    return Reward(score if callable(score) else None, part, in_use)


def _has_weight(options: Any) -> bool:
    return isinstance(options, type) and issubclass(options, PartOptions)


def _by_score(score: Score) -> Part:
    """Returns the part that scores each node's outcome by itself."""

    def part(nodes: Nodes, options: Any) -> np.ndarray:
        return np.array([score(one, options) for one in nodes.outcomes_N], dtype=np.float64)

    return part
