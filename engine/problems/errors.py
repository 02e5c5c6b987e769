"""Faults of a data set: all of them at once, each with its position and its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.config.errors import printable

MAX_SHOWN = 20
_MAX_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class DatasetFault:
    """One fault of a data set. `line` counts from 1; 0 is the file as a whole.

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
        place = f"{self.file}:{self.line}" if self.line else self.file
        return printable(f"{place}: {self.field} = {value}: {self.remedy}")


def _represented(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, deeply nested lists
        return f"({type(value).__name__})"


class DatasetError(ValueError):
    """Raised for a data set that cannot be used; `faults` holds all its faults."""

    def __init__(self, faults: list[DatasetFault]):
        self.faults = faults
        lines = [str(fault) for fault in faults[:MAX_SHOWN]]
        if len(faults) > MAX_SHOWN:
            lines.append(f"... and {len(faults) - MAX_SHOWN} more")
        super().__init__("\n".join(lines))
