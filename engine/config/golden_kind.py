"""Base of all kinds of golden cases: worked numbers, run through the functions that training uses.

Kinds that several methods share are in `engine.golden.kinds`. One of a single method is in the
method's own module, as `GOLDEN`, a dict from the kind's name to its `Kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.config.heads import heads_of
from engine.config.methods import REGISTRIES, registry

Case = dict[str, Any]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Kind:
    """Kind of case: the function that runs it, and the names of the inputs that it reads.

    `needs` (required) and `takes` (optional) are names separated by spaces. Unknown inputs are
    errors: a case with an input that is not read would test something else than it seems to.
    Where `method` is the name of an input that selects a method of a registry, the method's options
    may be inputs too (`options`), and what its heads give.
    """

    run: Callable[[Case], Any]
    needs: str
    takes: str = ""
    method: str = ""
    registry: str = ""
    """Kind of that registry (`engine.config.methods`)."""

    def input_errors(self, inputs: dict[str, Any]) -> list[str]:
        """Returns missing and unknown inputs, in sentences."""
        needs, takes = self.needs.split(), [*self.takes.split(), *self._options(inputs)]
        unknown = [key for key in inputs if key not in (*needs, *takes)]
        return [
            *(f"inputs.{key} is missing" for key in needs if key not in inputs),
            *(
                f"inputs.{key}: unknown input; choose one of {', '.join(sorted((*needs, *takes)))}"
                for key in unknown
            ),
        ]

    def _options(self, inputs: dict[str, Any]) -> list[str]:
        name = inputs.get(self.method)
        if not self.registry or not isinstance(name, str):
            return []
        methods = registry(self.registry).methods
        if not (options := methods.options(name)):
            return []
        return [*options.model_fields, *heads_of(methods.source(name))]


def options(kind: str, name: str, inputs: dict[str, Any]) -> Any:
    """Returns the options of a method of a registry, with the values that inputs give; None if it
    has none."""
    model = registry(kind).methods.options(name)
    if model is None:
        return None
    return model.model_validate({key: inputs[key] for key in model.model_fields if key in inputs})


def golden_kinds() -> dict[str, Kind]:
    """Returns the kinds that stand beside their methods, by name."""
    return {
        name: kind
        for one in REGISTRIES
        for method in one.methods.every()
        for name, kind in getattr(one.methods.source(method), "GOLDEN", {}).items()
    }


def lookup(table: dict[str, Entry], name: str, what: str) -> Entry:
    """Returns the entry of that name.

    Raises:
        ValueError: the name is unknown; lists those that exist.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(sorted(table))}")
    return table[name]
