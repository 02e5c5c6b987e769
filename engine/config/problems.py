"""Settings of the problem set."""

from __future__ import annotations

from pydantic import Field, model_validator

from engine.config.base import Settings, Whole
from engine.config.locations import DatasetPath

FEW_READINGS = (2, 3, 4, 6, 8)
"""Numbers of readings of an underspecified problem, unless others are requested."""
MANY_READINGS = (12, 16)
"""Further numbers, of which each needs several open details in one statement."""
READING_COUNTS = FEW_READINGS + MANY_READINGS
MIXTURE = ("underspecified_share", "fewest_readings", "most_readings")
"""Settings of the mixture of fully stated and underspecified problems."""


class ProblemsConfig(Settings):
    dataset: DatasetPath = Field("generated", min_length=1)
    """`generated`; in the browser and by REST also `dataset:NAME/NUMBER`, and `local:NAME` for a
    data set that the server's operator has listed; on the command line the path of a file or folder
    of problems: our own JSONL, or a published data set as JSON, JSONL, Parquet or Arrow, or
    `hf:ORG/NAME@REVISION` of a Hugging Face hub."""
    format: str = Field("auto", min_length=1)
    """Format of the file; `auto` detects it by its fields."""
    seed: Whole = Field(0, ge=0)
    """Seed of the built-in generator, and of the split of a file."""
    train: Whole = Field(4000, ge=1)
    """Problems in the training split."""
    validation: Whole = Field(100, ge=0)
    """Problems of the validation split, measured every `training.validate_every` steps."""
    test: Whole = Field(300, ge=0)
    """Problems of the test split, measured once, at the end, with the first and last weights."""
    underspecified_share: float = Field(0.0, ge=0, le=1)
    """Share of generated problems whose statement has several readings, of which only the failing
    public tests show the one that is meant."""
    fewest_readings: int = Field(READING_COUNTS[0], ge=READING_COUNTS[0], le=READING_COUNTS[-1])
    """Fewest readings of an underspecified problem: 2, 3, 4, 6, 8, 12 or 16."""
    most_readings: int = Field(FEW_READINGS[-1], ge=READING_COUNTS[0], le=READING_COUNTS[-1])
    """Most readings of an underspecified problem. With 12 or 16 its statement always leaves several
    details open."""

    @model_validator(mode="after")
    def _underspecified_problems_exist(self) -> ProblemsConfig:
        if self.underspecified_share and self.dataset != "generated":
            raise ValueError(
                f"underspecified_share = {self.underspecified_share} with dataset = "
                f"{self.dataset}: only generated problems can be underspecified; leave one out"
            )
        low, high = self.fewest_readings, self.most_readings
        if not any(low <= count <= high for count in READING_COUNTS):
            raise ValueError(
                f"fewest_readings = {low} and most_readings = {high}: no problem has between "
                f"{low} and {high} readings; there are {', '.join(map(str, READING_COUNTS))}"
            )
        return self
