"""Settings of credit assignment."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Whole
from engine.config.method_settings import MethodSettings


class CreditConfig(MethodSettings):
    SECTION = "credit"

    score: str = "binary"
    """Score of a node: 1 if every test passes else 0, or the share of tests that pass; a name in
    `engine.credit.rewards.REWARDS`."""
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
