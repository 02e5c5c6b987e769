"""Base of all kinds of golden cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Case = dict[str, Any]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Kind:
    """Kind of case: the function that runs it, and the names of the inputs that it reads.

    `needs` (required) and `takes` (optional) are names separated by spaces. Unknown inputs are
    errors: a case with an input that is not read would test something else than it seems to.
    """

    run: Callable[[Case], Any]
    needs: str
    takes: str = ""

    def input_errors(self, inputs: dict[str, Any]) -> list[str]:
        """Returns missing and unknown inputs, in sentences."""
        needs, takes = self.needs.split(), self.takes.split()
        unknown = [key for key in inputs if key not in (*needs, *takes)]
        return [
            *(f"inputs.{key} is missing" for key in needs if key not in inputs),
            *(
                f"inputs.{key}: unknown input; choose one of {', '.join(sorted((*needs, *takes)))}"
                for key in unknown
            ),
        ]


def lookup(table: dict[str, Entry], name: str, what: str) -> Entry:
    """Returns the entry of that name.

    Raises:
        ValueError: the name is unknown; lists those that exist.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(sorted(table))}")
    return table[name]
