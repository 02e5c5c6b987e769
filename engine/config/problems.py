"""Settings of the problem set."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings, Whole
from engine.config.locations import DatasetPath


class ProblemsConfig(Settings):
    dataset: DatasetPath = Field("generated", min_length=1)
    """`generated`; in the browser and by REST also `dataset:NAME/NUMBER`, and `local:NAME` for a
    data set that the server's operator has listed; on the command line the path of a file or folder
    of problems: our own JSONL, or a published data set as JSON, JSONL, Parquet or Arrow."""
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
