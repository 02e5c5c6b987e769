"""Issues of a data set: all of them at once, each with its position and its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.config.errors import printable

MAX_SHOWN = 20
_MAX_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class DatasetIssue:
    """One issue of a data set. `line` counts from 1; 0 is the file as a whole.

    Its text can be printed and stored, whatever the file and its name contain.
    """

    file: str
    line: int
    field: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        value = _represented(self.value)
        if len(value) > _MAX_VALUE_CHARS:
            value = value[: _MAX_VALUE_CHARS - 1] + "…"
        location = f"{self.file}:{self.line}" if self.line else self.file
        return printable(f"{location}: {self.field} = {value}: {self.remedy}")


def _represented(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, deeply nested lists
        return f"({type(value).__name__})"


class DatasetError(ValueError):
    """Raised for a data set that cannot be used; `issues` holds all its issues."""

    def __init__(self, issues: list[DatasetIssue]):
        self.issues = issues
        lines = [str(issue) for issue in issues[:MAX_SHOWN]]
        if len(issues) > MAX_SHOWN:
            lines.append(f"... and {len(issues) - MAX_SHOWN} more")
        super().__init__("\n".join(lines))
