"""Reward rises while held-out problems are solved less: the agent learns its problems, or a flaw
of their tests, not the task.

Sees, of one agent: the mean validation Pass@1 of the last `WINDOW` measurements is `ERRORS`
standard errors of the difference, and `FALL`, below the best mean of `WINDOW` earlier ones, while
its mean reward over the same steps rose by `RISE` or more. Measurements of one split share their
problems, so that the errors, which treat them as independent, are on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.health.history import History, Validation
from engine.health.rule import Finding
from engine.health.windows import mean

TITLE = "Held-out falls while reward rises"
ADVICE = (
    "Keep the best checkpoint by validation and stop, or go back to it; add problems, add "
    "loss.kl_coefficient, lower optimizer.learning_rate, and look for answers that pass the tests "
    "without solving the problem."
)
GENERAL_ADVICE = (
    "Keep the best checkpoint by validation and stop, or go back to it; add problems or a KL "
    "penalty, lower the learning rate, and look for answers that are rewarded without solving the "
    "problem."
)
WINDOW = 3
"""Measurements in a mean: one alone is too noisy."""
ERRORS = 3.0
"""The best of many windows is high by chance; 3 is above that."""
FALL = 0.05
RISE = 0.02


def find(history: History) -> Iterator[Finding]:
    for agent in history.agents:
        values = [one for one in history.validations if agent in one.agents]
        if len(values) < 2 * WINDOW or not values[-1].rewards:
            continue
        windows = [values[start : start + WINDOW] for start in range(len(values) - WINDOW + 1)]
        now, earlier = windows[-1], windows[:-WINDOW]
        best = max(earlier, key=lambda window: _pass1(window, agent))
        before, after = _pass1(best, agent), _pass1(now, agent)
        error = math.hypot(_error(best, agent), _error(now, agent))
        reward_before, reward_after = _reward(best, agent), _reward(now, agent)
        fell = before - after > max(FALL, ERRORS * error)
        if fell and reward_after - reward_before >= RISE:
            yield Finding(
                f"Validation {_fall(now[-1].measure, before, after, error)} while the reward rose "
                f"from {reward_before:.2f} to {reward_after:.2f}.",
                best[-1].step,
                agent,
                {
                    "validation_before": before,
                    "validation": after,
                    "standard_error": error,
                    "reward_before": reward_before,
                    "reward": reward_after,
                },
            )


def _fall(measure: str, before: float, after: float, error: float) -> str:
    if measure == "Pass@1":
        return f"{measure} fell from {before:.1%} to {after:.1%} (± {error:.1%})"
    return f"{measure} fell from {before:.3g} to {after:.3g} (± {error:.2g})"


def _pass1(window: list[Validation], agent: str) -> float:
    return mean(one.agents[agent] for one in window)


def _error(window: list[Validation], agent: str) -> float:
    """Returns the standard error of the window's mean."""
    return math.hypot(*(one.errors.get(agent, 0.0) for one in window)) / len(window)


def _reward(window: list[Validation], agent: str) -> float:
    return mean(one.rewards[agent] for one in window if agent in one.rewards)
