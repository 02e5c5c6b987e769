"""Options of chat templates: names and values of variables that a template reads.

A template is a program of the model's publisher: which options it knows is its own business, so any
name is accepted that the rendering itself does not set. Values are plain, so that a run's record,
TOML, JSON and the form hold the same ones.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

MOST_OPTIONS, MOST_CHARACTERS, LARGEST = 32, 1000, 2**53
RENDERED = frozenset(
    {
        "add_generation_prompt",
        "documents",
        "messages",
        "raise_exception",
        "strftime_now",
        "tools",
    }
)
"""Variables and functions that every rendering sets."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SCHEMA = {
    "type": "object",
    "maxProperties": MOST_OPTIONS,
    "propertyNames": {
        "type": "string",
        "pattern": rf"^(?!({'|'.join(sorted(RENDERED))})$)(?!.*_token$){_NAME.pattern}$",
    },
    "additionalProperties": {
        "anyOf": [
            {"type": "boolean"},
            {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
            {"type": "string", "maxLength": MOST_CHARACTERS, "pattern": r"^[^\x00]*$"},
        ]
    },
}


def _checked(value: Any) -> Any:
    """Returns a table of options as given.

    Raises:
        ValueError: for the first option that is wrong, with its name, value and remedy.
    """
    if not isinstance(value, dict):
        raise ValueError("is no table; write it as { enable_thinking = false }")
    if len(value) > MOST_OPTIONS:
        raise ValueError(f"has {len(value)} options; give {MOST_OPTIONS} at most")
    for name, option in value.items():
        if reason := _why_wrong(name, option):
            shown = repr(option) if len(repr(option)) <= 80 else repr(option)[:77] + "..."
            raise ValueError(f"{name} = {shown}: {reason}")
    return value


def _why_wrong(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "name an option with letters, digits and _, as the template does"
    if name in RENDERED or name.endswith("_token"):
        return "every prompt sets this by itself; leave it out"
    if not isinstance(value, (bool, int, float, str)):
        return "give a text, a number, true or false"
    if isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST:
        return f"give a number from -{LARGEST} to {LARGEST}"
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return f"has {len(value):,} characters; give {MOST_CHARACTERS:,} at most"
    return ""


TemplateOptions = Annotated[
    dict[str, bool | int | float | str],
    BeforeValidator(_checked),
    WithJsonSchema(_SCHEMA),
    Field(max_length=MOST_OPTIONS),
]
NO_OPTIONS: dict[str, bool | int | float | str] = {}
"""The default; pydantic gives each agent its own copy."""
