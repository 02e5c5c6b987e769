"""The policy hardly explores any more, although it has not solved its problems.

Sees: the mean entropy of an agent's last `UPDATES` updates is below `FLOOR`, and its mean reward of
the same steps is below `SOLVED`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History, Update
from engine.health.rule import Finding, trailing
from engine.health.windows import last, mean

TITLE = "Entropy collapse"
ADVICE = (
    "Lower optimizer.learning_rate, raise loss.clip_high above loss.clip_low, add "
    "loss.entropy_coefficient or loss.kl_coefficient, or go back to an earlier checkpoint and fork."
)
GENERAL_ADVICE = (
    "Lower the learning rate, raise the upper clip range above the lower one, add an entropy bonus "
    "or a KL penalty, or go back to an earlier checkpoint."
)
UPDATES = 10
"""One update of a small batch says little: its answers may all be of easy problems."""
FLOOR = 0.02
"""Nats per token. The likeliest token then has about 99.7 % on average, so that an answer of 50
tokens is drawn the same nearly every time. Trainings of the starters that do well have means of ten
updates down to 0.035."""
SOLVED = 0.9
"""A policy that solves its problems has no reason to explore: low entropy is no fault then."""


def find(history: History) -> Iterator[Finding]:
    for agent, updates in history.updates.items():
        recent = last(updates, UPDATES)
        if len(recent) < UPDATES:
            continue
        entropy = mean(update.entropy for update in recent)
        reward = _reward(history, agent, recent)
        if entropy < FLOOR and reward < SOLVED:
            yield Finding(
                f"Mean entropy of the last {UPDATES} updates is {entropy:.3g} nats per token, at a "
                f"reward of {reward:.2f}.",
                _since(recent),
                agent,
                {"entropy": entropy, "reward": reward, "floor": FLOOR},
            )


def _reward(history: History, agent: str, recent: list[Update]) -> float:
    first = recent[0].step
    return mean(
        step.reward_by_agent[agent]
        for step in history.steps
        if step.step >= first and agent in step.reward_by_agent
    )


def _since(recent: list[Update]) -> int:
    low = trailing(recent, lambda update: update.entropy < FLOOR)
    return (low or recent)[0].step
