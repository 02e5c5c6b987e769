"""Settings of the rollout correction, part of those of the loss (`engine.losses.importance`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine.config.base import described


class Level(StrEnum):
    """Unit over which one importance weight is computed (docs/algorithm.md, section 7)."""

    TOKEN = "token"  # nosec B105
    SEQUENCE = "sequence"
    GEOMETRIC = "geometric"


class WeightMode(StrEnum):
    """Treatment of importance weights beyond the threshold."""

    TRUNCATE = "truncate"
    MASK = "mask"


Correction = Annotated[
    bool,
    described(
        "Weight the generator's tokens by the ratio of the learner's policy to the generator's."
    ),
]
Unit = Annotated[Level, described("Unit over which one such weight is computed.")]
Mode = Annotated[
    WeightMode, described("Treatment of weights beyond the threshold: truncated to it, or masked.")
]
Threshold = Annotated[
    float,
    Field(ge=1),
    described("C of truncated importance sampling, learner over generator."),
]
Veto = Annotated[
    float | None,
    Field(gt=0, lt=1),
    described(
        "An answer with a token of a smaller weight than this is left out whole; unset is off."
    ),
]


def check_importance(correction: bool, veto: float | None) -> None:
    """Raises `ValueError` if a veto is set that has no effect."""
    if veto is not None and not correction:
        raise ValueError(
            f"importance_veto = {veto} has no effect without importance_correction; leave it "
            "unset, or turn the correction on"
        )
