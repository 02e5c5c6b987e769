"""Figures that an external engine did not compute: absent, null, NaN or infinite. Pure.

Such are also entries of lists that have one figure for each token.

Invariant: such a figure is stored as null, or stays absent where its field has a default. It is a
gap in every chart, table and file, and never a number that nobody measured. All other fields are
held to their types as before.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args

import msgspec

from engine.events.vocabulary import KINDS, FamilyFigures, LearnedNode, NodeText

FIGURE_KINDS = frozenset(
    ("step.end", "agent.update", "eval.result", "system.sample", "node.close", "node.credit",
     "tree.close", "health")
)  # fmt: skip
"""Kinds of events that report measurements."""
TOKEN_LISTS = {"node.text": NodeText, "tree.learned": LearnedNode}
"""Structs of each kind of events whose lists of numbers have one figure for each token."""
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
    if kind == "tree.learned":
        nodes = payload.get("nodes")
        if isinstance(nodes, list):
            filled = [_filled_lists(kind, one, gaps, ("nodes", at)) for at, one in enumerate(nodes)]
            payload = {**payload, "nodes": filled}
        return payload, gaps
    if kind in TOKEN_LISTS:
        return _filled_lists(kind, payload, gaps, ()), gaps
    return _filled(KINDS[kind], payload, gaps), gaps


@cache
def token_lists_of(kind: str) -> tuple[str, ...]:
    """Returns the fields of a kind's struct that have one figure for each token."""
    fields = msgspec.structs.fields(TOKEN_LISTS[kind])
    return tuple(field.name for field in fields if field.type == list[float])


def _filled_lists(kind: str, given: Any, gaps: Gaps, path: Path) -> Any:
    if not isinstance(given, dict):
        return given
    filled = dict(given)
    for name in token_lists_of(kind):
        figures = given.get(name)
        if figures is None:
            filled[name] = []
        elif isinstance(figures, list):
            missing = [at for at, value in enumerate(figures) if _is_missing(value)]
            for at in missing:
                gaps.add((*path, name, at), is_absent=False)
            filled[name] = figures.copy()
            for at in missing:
                filled[name][at] = 0.0
    return filled


Path = tuple[str | int, ...]
"""Names of fields and indices of items, from a payload to a figure."""


class Gaps:
    """Missing figures of a payload, by the path of the table that holds them."""

    def __init__(self) -> None:
        self._null: list[Path] = []
        self._absent: list[Path] = []

    def add(self, path: Path, *, is_absent: bool) -> None:
        """Notes that the figure at a path is missing; `is_absent`: its field has a default."""
        (self._absent if is_absent else self._null).append(path)

    def restore(self, payload: dict[str, Any]) -> None:
        """Puts the gaps back into a payload that was checked."""
        for path in self._null:
            _table(payload, path)[path[-1]] = None
        for path in self._absent:
            _table(payload, path).pop(path[-1], None)


def _table(payload: Any, path: Path) -> Any:
    *parents, _ = path
    for name in parents:
        payload = payload[name]
    return payload


def _filled(kind: type, given: dict[str, Any], gaps: Gaps, path: Path = ()) -> dict[str, Any]:
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
