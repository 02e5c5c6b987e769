"""Fractional score: the share of tests that pass."""

from __future__ import annotations

from typing import Any

from engine.credit.rewards.outcome import Outcome


def score(outcome: Outcome, options: Any) -> float:
    """Returns the share of all tests that pass."""
    return outcome.fraction
