"""Base class and types of all sections of the settings."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Whole = Annotated[int, Field(lt=2**31)]
"""An integer that every store and library can hold."""


class Settings(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


def described(text: str) -> Any:
    """Returns the help of a setting whose type stands with what it is about, and not in its
    section."""
    return Field(description=cleandoc(text))
