"""Rewards: from what the tests say of a program to the raw score of its node, and named parts of a
node's reward alongside it.

A new reward is one module here and one line of this registry (docs/extending.md). Source:
docs/algorithm.md, section 4.
"""

from __future__ import annotations

from engine.config.credit import CreditConfig
from engine.config.methods import Methods
from engine.credit.rewards import binary, concise, format, fraction, judge, overlong, public
from engine.credit.rewards.outcome import Outcome
from engine.credit.rewards.reward import Reward, reward_of

REWARDS: Methods[Reward] = Methods(
    "rewards",
    reward_of,
    binary,
    concise,
    format,
    fraction,
    judge,
    overlong,
    public,
)


def raw_score(outcome: Outcome, config: CreditConfig) -> float:
    """Returns the configured score of a program that was verified.

    Raises:
        ValueError: the reward gives no number from 0 to 1, which posteriors need.
    """
    of_outcome = REWARDS[config.score].score
    assert of_outcome, "settings refuse a part that is no score"
    score = of_outcome(outcome, config.options("score"))
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"credit.score = {config.score} gives {score}: it must be from 0 to 1")
    return score
