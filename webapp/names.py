"""Names that people give: the type of REST, the fields of forms and of tables.

One rule holds for all of them (`engine.config.names`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from django import forms
from django.db import models
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from engine.config.names import (
    BLANK_ALONE,
    PATTERN,
    PATTERN_OR_EMPTY,
    name_fault,
    shown_name,
    shown_text,
)


def _checked(name: str) -> str:
    if fault := name_fault(name):
        raise PydanticCustomError("name", "{fault}", {"fault": fault})
    return name


def _checked_or_empty(name: str) -> str:
    return name and _checked(name)


def required_name(longest: int) -> Any:
    """Returns the type of a name in a body of REST, of at most `longest` characters."""
    schema = Field(min_length=1, max_length=longest, json_schema_extra={"pattern": PATTERN})
    return Annotated[str, schema, AfterValidator(_checked)]


def optional_name(longest: int) -> Any:
    """The same, but empty stands for a default."""
    schema = Field(max_length=longest, json_schema_extra={"pattern": PATTERN_OR_EMPTY})
    return Annotated[str, schema, AfterValidator(_checked_or_empty)]


class NameField(forms.CharField):
    """A name in a form; blanks around it are removed. One of blanks alone is refused, also where
    none is required."""

    def to_python(self, value: Any) -> str:
        name = super().to_python(value) or ""
        if value and not name:
            raise forms.ValidationError(f"“{shown_name(str(value))}” {BLANK_ALONE}.")
        return name

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and (fault := name_fault(value)):
            raise forms.ValidationError(f"“{shown_name(value)}”: {fault}.")


class NameColumn(models.CharField):
    """Column of names. One that was stored before such names were refused is read with escapes, so
    that every page, response and export shows it so."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return shown_name(value) if value else value

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """Returns those of a plain column: the database stores the same."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.CharField", arguments, options


class TextColumn(models.TextField):
    """Column of texts of other people, such as causes of failures from logs: read with escapes for
    characters that steer a terminal or turn the direction of a line."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return shown_text(value) if value else value

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """Returns those of a plain column: the database stores the same."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.TextField", arguments, options
