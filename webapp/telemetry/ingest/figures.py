"""Figures that an external engine did not compute: absent, null, NaN or infinite. Pure.

Invariant: such a figure is stored as null, or stays absent where its field has a default. It is a
gap in every chart, table and file, and never a number that nobody measured. All other fields are
held to their types as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args

import msgspec

from engine.events.vocabulary import KINDS, FamilyFigures

FIGURE_KINDS = frozenset(
    ("step.end", "agent.update", "eval.result", "system.sample", "node.close", "node.credit",
     "tree.close", "health")
)  # fmt: skip
"""Kinds of events that report measurements."""
_NO_FIGURES = frozenset(("step", "since", "since_time"))
"""Numbers that say of what an event is, and are needed."""
_NOT_FINITE = frozenset(("nan", "inf", "-inf", "infinity", "-infinity", "+infinity"))
_NUMBERS = frozenset((int, float))


@cache
def figures_of(kind: type) -> tuple[dict[str, bool], dict[str, bool], frozenset[str]]:
    """Returns of a payload's class the names of its figures, each with whether it has a default;
    those of its tables of figures by name, with whether they are required; and those of tables of
    `FamilyFigures`."""
    numbers: dict[str, bool] = {}
    tables: dict[str, bool] = {}
    families = set()
    for field in msgspec.structs.fields(kind):
        types = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        if field.name in _NO_FIGURES or NoneType in types:  # null is a value of some
            continue
        if _NUMBERS.intersection(types):
            numbers[field.name] = not field.required
        elif dict[str, float] in types:
            tables[field.name] = field.required
        elif dict[str, FamilyFigures] in types:
            families.add(field.name)
    return numbers, tables, frozenset(families)


def without_gaps(kind: str, payload: Any) -> tuple[Any, Gaps]:
    """Returns a payload in which a number stands for each missing figure, which its type then
    accepts, and these gaps."""
    gaps = Gaps()
    if not isinstance(payload, dict):
        return payload, gaps
    return _filled(KINDS[kind], payload, gaps), gaps


class Gaps:
    """Missing figures of a payload, by the path of the table that holds them."""

    def __init__(self) -> None:
        self._null: list[tuple[str, ...]] = []
        self._absent: list[tuple[str, ...]] = []

    def add(self, path: tuple[str, ...], *, is_absent: bool) -> None:
        """Notes that the figure at a path is missing; `is_absent`: its field has a default."""
        (self._absent if is_absent else self._null).append(path)

    def restore(self, payload: dict[str, Any]) -> None:
        """Puts the gaps back into a payload that was checked."""
        for path in self._null:
            _table(payload, path)[path[-1]] = None
        for path in self._absent:
            _table(payload, path).pop(path[-1], None)


def _table(payload: dict[str, Any], path: Iterable[str]) -> dict[str, Any]:
    *parents, _ = path
    for name in parents:
        payload = payload[name]
    return payload


def _filled(
    kind: type, given: dict[str, Any], gaps: Gaps, path: tuple[str, ...] = ()
) -> dict[str, Any]:
    numbers, tables, families = figures_of(kind)
    filled = dict(given)
    for name, has_default in numbers.items():
        if _is_missing(given.get(name)):
            gaps.add((*path, name), is_absent=has_default)
            filled.pop(name, None)
            if not has_default:
                filled[name] = 0
    for name in tables:
        table = given.get(name)
        if table is None and name in given:
            del filled[name]
        if table is None and tables[name]:
            filled[name] = {}
        if isinstance(table, dict):
            missing = [key for key, value in table.items() if _is_missing(value)]
            for key in missing:
                gaps.add((*path, name, key), is_absent=False)
            filled[name] = {**table, **dict.fromkeys(missing, 0.0)}
    for name in families:
        if isinstance(table := given.get(name), dict):
            filled[name] = {
                key: _filled(FamilyFigures, one, gaps, (*path, name, key))
                if isinstance(one, dict)
                else one
                for key, one in table.items()
            }
    return filled


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.lower() in _NOT_FINITE)


WITH_DEFAULTS = frozenset(kind for kind in FIGURE_KINDS if any(figures_of(KINDS[kind])[0].values()))
"""Kinds of which some figure has a default, so that its absence is no error of the type."""
