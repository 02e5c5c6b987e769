"""Base class and types of all sections of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Whole = Annotated[int, Field(lt=2**31)]
"""An integer that every store and library can hold."""


class Settings(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


def registered(package: str) -> list[str]:
    """Returns the names of the methods in `engine/<package>/methods`, which are those of its
    modules."""
    folder = Path(__file__).parents[1] / package / "methods"
    return sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")
