"""Validation errors of settings: the path, the given value and the remedy.

Invariant: an error is short, and is text and JSON that every page, terminal and database accepts.
"""

from __future__ import annotations

import math
from types import NoneType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from engine.config.printable import printable as escaped

_MAX_DEPTH = 20
_MAX_SHOWN_CHARS = 200
_MAX_REASON_CHARS = 4000


class ConfigError(ValueError):
    """Raised for settings that cannot run; `problems` holds one dict (path, value, reason) per
    error.

    Invariant: `problems` is short and is JSON, whatever the input.
    """

    def __init__(self, problems: list[dict[str, Any]]):
        self.problems = [
            {
                "path": shown(p["path"]),
                "value": shown(p["value"]),
                "reason": printable(p["reason"][:_MAX_REASON_CHARS]),
            }
            for p in problems
        ]
        super().__init__(
            "\n".join(f"{p['path']} = {p['value']!r}: {p['reason']}" for p in self.problems)
        )


def printable(text: str) -> str:
    """Returns the text with escapes for what a page, a terminal or a database would not accept."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def shown(value: Any) -> Any:
    """Returns a given value as messages repeat it: short, and plain JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        value = value if value.bit_length() < 64 else hex(value)
    if isinstance(value, str):
        text = escaped(printable(value[:_MAX_SHOWN_CHARS]))
        return f"{text}…" if len(value) > _MAX_SHOWN_CHARS else text
    return value if isinstance(value, int) or value == [] else "..."


def unstorable(path: str, value: Any, depth: int = 0) -> list[dict[str, Any]]:
    """Returns an error (path, value, reason) for each part of the settings that no database would
    store."""
    if reason := _why_unstorable(path, value, depth):
        return [{"path": path or "config", "value": value, "reason": reason}]
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        return []
    return [
        error
        for key, item in items
        for error in unstorable(f"{path}.{key}".lstrip("."), item, depth + 1)
    ]


def _why_unstorable(path: str, value: Any, depth: int) -> str:
    """Returns why no setting can have this value, or an empty string."""
    if depth > _MAX_DEPTH:
        return f"is nested more than {_MAX_DEPTH} deep"
    if printable(path) != path or (isinstance(value, str) and printable(value) != value):
        return "must be text without NUL and without halves of surrogate pairs"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and value.bit_length() >= 64:
        return "is a number too large for any setting"
    if not isinstance(value, (bool, int, float, str, list, tuple, dict, NoneType)):
        return f"must be a number, a text, true or false, not a {type(value).__name__}"
    return ""


def validation_errors(exception: ValidationError) -> list[dict[str, Any]]:
    errors = [_error(e) for e in exception.errors()]
    # An invalid item also makes its list too short, which is not a second error.
    paths = [error["path"] for error in errors]
    return [f for f in errors if not any(path.startswith(f"{f['path']}.") for path in paths)]


def _error(details: ErrorDetails) -> dict[str, Any]:
    path = ".".join(str(part) for part in details["loc"]) or "config"
    value = details["input"]
    if isinstance(value, (BaseModel, dict)):
        value = "..."
    reason = details["msg"].removeprefix("Value error, ")
    if details["type"] == "extra_forbidden":
        reason = "unknown setting; check the spelling against `python -m engine config`"
    return {"path": path, "value": value, "reason": reason}
