"""Share of the public tests that pass: of those that a repair is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.config.misfits import Misfit
from engine.credit.rewards.outcome import Outcome
from engine.credit.rewards.reward import PartOptions

if TYPE_CHECKING:
    from engine.config.schema import RunConfig


class Options(PartOptions):
    """Share of the public tests that pass."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Warns of an environment that may have no public tests."""
    if not config.environment.judges_programs:
        reason = (
            "may have no public tests, and then their share, of credit.public or credit.score = "
            "public, is 0 for every answer; choose another reward, or programs"
        )
        yield Misfit("environment.name", config.environment.name, reason, refused=False)


def score(outcome: Outcome, options: Any) -> float:
    """Returns the share; 0 without public tests."""
    return outcome.public_passed / max(1, len(outcome.public))
