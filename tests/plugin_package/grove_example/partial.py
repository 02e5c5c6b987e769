"""Share of the tests that pass, at most a half while one of them fails."""

from __future__ import annotations

from typing import Any

from engine.credit.rewards.outcome import Outcome


def score(outcome: Outcome, options: Any) -> float:
    """Returns 1 for a program that passes every test, else half the share that it passes."""
    return 1.0 if outcome.passed else outcome.fraction / 2
