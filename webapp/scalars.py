"""Scalars of an event, by name. Pure.

Names: `reward`, `solved`, `step.FIELD`, `step.filtered_share` (of the step's trees), `phase.NAME`,
`reward.AGENT`, `share.AGENT` of a step's end; `FIELD.AGENT` of an agent's update, and
`figures.NAME.AGENT` of the figures of its methods;
`SPLIT.agent.AGENT`, `SPLIT.error.AGENT`, `SPLIT.no_program.REASON`, `SPLIT.FIELD` of an evaluation,
and of a family of its problems `SPLIT.FAMILY.agent.AGENT` and `SPLIT.FAMILY.FIELD`; `system.FIELD`
of a sample, `system.METRIC.NODE` and `system.METRIC.NODE:DEVICE` of the machines of its cluster;
`logged.NAME` of a number of `metric.logged`, its name as logged but for "~" and "/", written "~0"
and "~1" as in a JSON Pointer (RFC 6901); `search.*`, `best.K`, `within.K`, `ends.*`, `stops.*`,
`no_program.*`, `hacking.*` and `cost.*` of the trees of a step (`telemetry.quality`). A field that
events gain later is included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from types import NoneType
from typing import Any

Names = tuple[str, ...]
Field = str | tuple[str, ...]
"""A field with one value, or one with a value per key: its name, then the keys."""

LONGEST_NAME = 200
SYSTEM = "system."
"""Prefix of metrics of the machine, not of training: a resumed run keeps them."""

FIGURES = "figures"
"""Field of an update with what methods report of themselves, and first word of these series."""
LOGGED = "logged."
"""Prefix of numbers that a program logged by names of its own."""

_NUMBERS = frozenset((int, float))
LARGEST = 1e300
"""Numbers of this size and beyond are not charted."""
_OF_STEPS = {"phases": "phase", "reward_by_agent": "reward", "node_share": "share"}
_OF_SPLITS = {"agents": "agent", "standard_errors": "error"}
_PLAIN = ("reward", "solved")
_SHARE = "filtered_share"


class Scalars:
    """Extracts the numbers of many events: those of one kind mostly have the same fields, so names,
    and which values are numbers, are computed once for all of them."""

    def __init__(self) -> None:
        self._alike: dict[Any, tuple[Names, Callable[[Sequence[Any]], Sequence[Any]], Names]] = {}

    def of(self, kind: str, payload: dict[str, Any]) -> tuple[Names, Sequence[float], Names]:
        """Returns names and values of all finite numbers of the event, and the names of those that
        are null or not finite; none for other kinds."""
        if kind not in SCALAR_KINDS:
            return (), (), ()
        fields, values = _flat(payload)
        if kind == "step.end" and (share := _filtered_share(payload)) is not None:
            fields.append(_SHARE)
            values.append(share)
        owner = str(payload.get("agent") or payload.get("split") or "")
        key = kind, owner, tuple(fields), tuple(map(type, values))
        if key not in self._alike:
            self._alike[key] = _numbers(*key)
        names, numbers, missing = self._alike[key]
        selected = numbers(values)
        if _all_finite(selected):
            return names, selected, missing
        finite, left = _finite(names, selected)
        return finite, left, (*missing, *(name for name in names if name not in finite))


@lru_cache(maxsize=4096)
def clean(name: str, before: str = "", after: str = "") -> str:
    """Returns `before`, name and `after` as a name that a URL can hold; agents of external engines
    may have any name."""
    name = f"{before}{name}{after}"
    return name.replace("/", "_").replace("\0", "_").replace("\\", "_")[:LONGEST_NAME]


def _flat(payload: dict[str, Any]) -> tuple[list[Field], list[Any]]:
    """Returns the fields, and their values in the same order."""
    fields: list[Field] = []
    values: list[Any] = []
    for field, value in payload.items():
        if field == "families" and isinstance(value, dict):
            _flatten_families(value, fields, values)
        elif isinstance(value, dict):
            fields.append((field, *value))
            values += value.values()
        else:
            fields.append(field)
            values.append(value)
    return fields, values


def _flatten_families(families: dict[str, Any], fields: list[Field], values: list[Any]) -> None:
    for family, figures in families.items():
        for field, value in figures.items() if isinstance(figures, dict) else ():
            if isinstance(value, dict):
                fields.append((f"{family}.{_OF_SPLITS.get(field, field)}", *value))
                values += value.values()
            else:
                fields.append(f"{family}.{field}")
                values.append(value)


def _filtered_share(payload: dict[str, Any]) -> float | None:
    filtered, trees = payload.get("filtered_trees"), payload.get("trees")
    return filtered / trees if type(filtered) is int and type(trees) is int and trees else None


def _numbers(
    kind: str, owner: str, fields: tuple[Field, ...], types: tuple[type, ...]
) -> tuple[Names, Callable[[Sequence[Any]], Sequence[Any]], Names]:
    """Returns the names of the numbers among such values, a function that selects them, and the
    names of those without a value."""
    namer = _NAMERS[kind]
    names = [name for field in fields for name in namer(field, owner)]
    # A boolean is no number.
    indices = [
        index
        for index, (name, type_) in enumerate(zip(names, types, strict=True))
        if name is not None and type_ in _NUMBERS
    ]
    selected = tuple(name for index in indices if (name := names[index]) is not None)
    # Only a number that is not finite is logged as text.
    empty = (NoneType, str) if kind == "metric.logged" else (NoneType,)
    missing = tuple(
        name
        for name, type_ in zip(names, types, strict=True)
        if name is not None and type_ in empty
    )
    if len(indices) > 1:
        return selected, itemgetter(*indices), missing
    return selected, lambda values: [values[index] for index in indices], missing


def _all_finite(values: Sequence[Any]) -> bool:
    try:
        return math.hypot(*values) < LARGEST
    except OverflowError:  # an integer beyond the range of floats
        return False


def _finite(names: Names, values: Sequence[Any]) -> tuple[Names, Sequence[float]]:
    # Drops NaN, whose comparisons are false, and infinities.
    finite = [pair for pair in zip(names, values, strict=True) if -LARGEST < pair[1] < LARGEST]
    return tuple(name for name, _ in finite), [float(value) for _, value in finite]


def _of_step(field: Field, _: str) -> list[str | None]:
    if isinstance(field, tuple):
        return _by_name(_OF_STEPS.get(field[0], field[0]), field[1:])
    return [None if field == "step" else clean(field, "" if field in _PLAIN else "step.")]


def _of_update(field: Field, agent: str) -> list[str | None]:
    if isinstance(field, tuple):
        if field[0] != FIGURES:
            return [None] * (len(field) - 1)
        return [clean(name, f"{FIGURES}.", f".{agent}") for name in field[1:]]
    return [None if field == "step" else clean(field, "", f".{agent}")]


def _of_evaluation(field: Field, split: str) -> list[str | None]:
    if isinstance(field, tuple):
        return _by_name(f"{split}.{_OF_SPLITS.get(field[0], field[0])}", field[1:])
    return [None if field == "step" else clean(field, f"{split}.")]


def _of_sample(field: Field, _: str) -> list[str | None]:
    if isinstance(field, tuple):
        if field[0] != "by_node":
            return [None] * (len(field) - 1)
        return [clean(name, SYSTEM) for name in field[1:]]
    return [clean(field, SYSTEM)]


def _of_logged(field: Field, _: str) -> list[str | None]:
    if isinstance(field, tuple):
        is_number = field[0] in ("numbers", "nonfinite")
        return [logged_name(name) if is_number else None for name in field[1:]]
    return [None]


def logged_name(name: str) -> str:
    """Returns the metric of a number that was logged under this name."""
    return clean(name.replace("~", "~0").replace("/", "~1"), LOGGED)


def _by_name(prefix: str, names: Sequence[str]) -> list[str | None]:
    return [clean(name, f"{prefix}.") for name in names]


_NAMERS: dict[str, Callable[[Field, str], list[str | None]]] = {
    "step.end": _of_step,
    "agent.update": _of_update,
    "eval.result": _of_evaluation,
    "system.sample": _of_sample,
    "metric.logged": _of_logged,
}
SCALAR_KINDS = frozenset(_NAMERS)
"""Kinds of events that report numbers."""
