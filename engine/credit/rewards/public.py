"""Share of the public tests that pass: of those that a repair is shown."""

from __future__ import annotations

from typing import Any

from engine.credit.rewards.outcome import Outcome
from engine.credit.rewards.reward import PartOptions


class Options(PartOptions):
    """Share of the public tests that pass."""


def score(outcome: Outcome, options: Any) -> float:
    """Returns the share; 0 without public tests."""
    return outcome.public_passed / max(1, len(outcome.public))
