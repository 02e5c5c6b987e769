"""Rewards: from what the tests say of a program to the raw score of its node.

A new reward is one module here and one line of this registry (docs/extending.md). Source:
docs/algorithm.md, section 4.
"""

from __future__ import annotations

from typing import Any

from engine.config.credit import CreditConfig
from engine.config.methods import Methods
from engine.credit.rewards import binary, fraction
from engine.credit.rewards.outcome import Outcome, Reward


def reward_of(module: Any) -> Reward:
    """Returns the reward that a module holds, its function `score`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(score := getattr(module, "score", None)):
        raise ValueError("has no function score(outcome, options)")
    return score


REWARDS: Methods[Reward] = Methods(
    "rewards",
    reward_of,
    binary,
    fraction,
)


def raw_score(outcome: Outcome, config: CreditConfig) -> float:
    """Returns the configured score of a program that was verified.

    Raises:
        ValueError: the reward gives no number from 0 to 1, which posteriors need.
    """
    score = REWARDS[config.score](outcome, config.options("score"))
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"credit.score = {config.score} gives {score}: it must be from 0 to 1")
    return score
