"""What every kind of golden case shares."""

from __future__ import annotations

from typing import Any, TypeVar

Case = dict[str, Any]
Entry = TypeVar("Entry")


def named(table: dict[str, Entry], name: str, what: str) -> Entry:
    """The entry of that name.

    Raises:
        ValueError: naming what is known.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known are {', '.join(sorted(table))}")
    return table[name]
