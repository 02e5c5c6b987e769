"""Settings of credit assignment."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from engine.config.base import Settings, Whole


class Score(StrEnum):
    """Function from test verdicts to a node's raw score (docs/algorithm.md, section 4)."""

    BINARY = "binary"
    FRACTION = "fraction"


class RaeConfig(Settings):
    """Settings of the advantage `rae`."""

    decay: float = Field(0.95, ge=0, le=1)
    """With the advantage `rae`: share of a role's baseline that an answer leaves."""


class CreditConfig(Settings):
    score: Score = Score.BINARY
    """Score of a node: 1 if every test passes else 0, or the share of tests that pass."""
    shaping_gamma: float = Field(0.5, ge=0, le=10)
    """Weight of the difference to the baseline; 0 turns shaping off."""
    shaping_lambda: float = Field(0.5, ge=0, le=1)
    """Share of the siblings, as opposed to the parent, in the baseline."""
    overlong_buffer_tokens: Whole = Field(0, ge=0)
    """Answers that end within this many tokens of the limit are penalised; 0 is off."""
    overlong_factor: float = Field(1.0, ge=0)
    """Maximum penalty of an overlong answer."""
    dynamic_filter: bool = True
    """Filter out trees in which every node scored 0, or every node scored 1."""
    refill_rounds: int = Field(0, ge=0, le=64)
    """Rounds in which filtered trees are replaced by trees of further problems, until a step has
    `training.trees_per_step` to learn from; 0 is off."""
    advantage: str = "mars2"
    """Advantage estimator: a name in `engine.credit.ADVANTAGES`."""
    rae: RaeConfig = RaeConfig()
