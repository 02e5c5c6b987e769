"""Interface of a rule: what it is called, what it finds, and what people change then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from engine.health.history import History


@dataclass(frozen=True)
class Finding:
    """What a rule sees in a history."""

    seen: str
    """One sentence with its numbers."""
    since: int
    """First step of it."""
    agent: str = ""
    figures: dict[str, float] = field(default_factory=dict)


class Rule(Protocol):
    """A module of `engine.health.rules`."""

    @property
    def TITLE(self) -> str: ...

    @property
    def ADVICE(self) -> str: ...

    # GENERAL_ADVICE, where the rule can judge runs of other trainers: without Grove's settings.

    def find(self, history: History) -> Iterable[Finding]:
        """Yields at most one finding per agent, or one of the whole run; a pure function."""
        ...


T = TypeVar("T")


def trailing(items: Sequence[T], holds: Callable[[T], bool]) -> Sequence[T]:
    """Returns the longest end of `items` whose every item `holds`."""
    count = 0
    for item in reversed(items):
        if not holds(item):
            break
        count += 1
    return items[len(items) - count :]
