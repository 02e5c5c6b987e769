"""Settings of credit assignment."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from engine.config.base import Settings, Whole


class Score(StrEnum):
    """How test verdicts become the raw score of a node (docs/algorithm.md, section 4)."""

    BINARY = "binary"
    FRACTION = "fraction"


class CreditConfig(Settings):
    score: Score = Score.BINARY
    """Score of a node: 1 if every test passes, or the share of the tests that do."""
    shaping_gamma: float = Field(0.5, ge=0, le=10)
    """Weight of the difference to the baseline; 0 turns shaping off."""
    shaping_lambda: float = Field(0.5, ge=0, le=1)
    """Share of the siblings, against the parent, in the baseline."""
    overlong_buffer_tokens: Whole = Field(0, ge=0)
    """Answers that end within this many tokens of the limit are penalised; 0 is off."""
    overlong_factor: float = Field(1.0, ge=0)
    """Largest penalty of an answer that is too long."""
    dynamic_filter: bool = True
    """Leave out trees in which every node scored the same 0 or 1."""
    refill_rounds: int = Field(0, ge=0, le=64)
    """Rounds in which trees that were left out are replaced by further problems, until a step has
    `training.trees_per_step` to learn from; 0 is off."""
    advantage: str = "mars2"
    """Name in `engine.credit.ADVANTAGES`."""
