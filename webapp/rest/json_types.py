"""JSON field types that accept only what the OpenAPI document declares.

They accept nothing that merely converts to it: no "1" and no true for a number, no 1 and no "yes"
for a flag. 1.0 is an integer, as in JSON Schema (draft 2020-12, 6.1.1). For bodies alone:
parameters of a path or a query are text, which pydantic converts.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict

LARGEST_FLOAT = 2**63
"""Floats from here on stay floats: no integer field accepts one so large."""


def integral(value: Any) -> Any:
    """The integer value of a float with no fraction; everything else as it is."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_FLOAT
    return int(value) if is_whole else value


def with_integers(value: Any) -> Any:
    """Parsed JSON in which each float with no fraction is an integer, at any depth."""
    if isinstance(value, dict):
        return {key: with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    return integral(value)


def integer(**bounds: int) -> Any:
    """`Integer` with bounds (`ge`, `le`, `lt` as of `pydantic.Field`): around a validator pydantic
    would enforce them, and not document them."""
    return Annotated[int, Field(strict=True, **bounds), BeforeValidator(integral)]


Integer = Annotated[int, Strict(), BeforeValidator(integral)]
Real = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
