"""Binary score: 1 if every test passes, else 0."""

from __future__ import annotations

from typing import Any

from engine.credit.rewards.outcome import Outcome


def score(outcome: Outcome, options: Any) -> float:
    """Returns 1 for a program that passes every test."""
    return float(outcome.passed)
