"""What every kind of golden case shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Case = dict[str, Any]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Kind:
    """A kind of case: what runs it, and the names of the inputs that it reads.

    `needs` and `takes`, what may be left out, are names with spaces between. An input that no kind
    reads would let a case pass that says something else than it seems to.
    """

    run: Callable[[Case], Any]
    needs: str
    takes: str = ""

    def faults(self, inputs: dict[str, Any]) -> list[str]:
        """What is missing, and what is not known, in sentences."""
        needs, takes = self.needs.split(), self.takes.split()
        unknown = [key for key in inputs if key not in (*needs, *takes)]
        return [
            *(f"inputs.{key} is missing" for key in needs if key not in inputs),
            *(
                f"inputs.{key}: unknown input; known are {', '.join(sorted((*needs, *takes)))}"
                for key in unknown
            ),
        ]


def named(table: dict[str, Entry], name: str, what: str) -> Entry:
    """The entry of that name.

    Raises:
        ValueError: naming what is known.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known are {', '.join(sorted(table))}")
    return table[name]
