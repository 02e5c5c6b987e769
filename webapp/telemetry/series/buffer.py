"""Buffer that gathers the numbers of events into columns. Pure.

Invariant: the numbers of a name stay in order of seq, and those of one event in the event's order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Moment = tuple[int, int, float, int, int]
"""Position of the run: seq, step, time, tokens, nodes."""
Names = tuple[str, ...]
Array = np.ndarray[Any, np.dtype[Any]]

COLUMNS = ("seq", "step", "time", "tokens", "nodes", "value")
KINDS = ("i8", "i8", "f8", "i8", "i8", "f8")
"""numpy types of these columns."""


@dataclass(frozen=True)
class Table:
    """Numbers of metrics that the same events reported, in order of seq."""

    names: list[str]
    moments: list[Array]
    """seq, step, time, tokens and nodes, each of shape [points]."""
    values_MP: Array
    """Values of shape [metrics, points]."""


class PointBuffer:
    """Buffer of numbers in the order in which they are recorded, after the stored ones."""

    def __init__(self) -> None:
        self._rows: dict[Names, tuple[list[Moment], list[Sequence[float]]]] = {}
        self.gaps: dict[str, list[Moment]] = {}
        """By name, the moments at which a number had no value."""

    def add(
        self, moment: Moment, names: Names, values: Sequence[float], missing: Names = ()
    ) -> None:
        """Adds the numbers of one event, and the names of those that it reports without a value."""
        for name in missing:
            self.gaps.setdefault(name, []).append(moment)
        if names:
            moments, rows = self._rows.setdefault(names, ([], []))
            moments.append(moment)
            rows.append(values)

    def tables(self) -> list[Table]:
        """Returns all numbers; each name is in one table."""
        groups_of_columns = [(names, *_columns(*rows)) for names, rows in self._rows.items()]
        reports: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for group, (names, _, _) in enumerate(groups_of_columns):
            for index, name in enumerate(names):
                reports[name].append((group, index))
        alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for name, reported in reports.items():
            alike[tuple(group for group, _ in reported)].append(name)
        return [
            _joined(
                names,
                [groups_of_columns[group][1] for group in groups],
                [
                    groups_of_columns[group][2][[reports[name][nth][1] for name in names]]
                    for nth, group in enumerate(groups)
                ],
            )
            for groups, names in alike.items()
        ]


def _columns(moments: list[Moment], rows: list[Sequence[float]]) -> tuple[list[Array], Array]:
    columns = zip(KINDS, zip(*moments, strict=True), strict=False)
    values = np.array(rows, dtype=np.float64).T
    return [np.array(column, dtype=kind) for kind, column in columns], values


def _joined(names: list[str], moments: list[list[Array]], values: list[Array]) -> Table:
    if len(values) == 1:
        return Table(names, moments[0], values[0])
    columns = [np.concatenate(parts) for parts in zip(*moments, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Table(names, [one[order] for one in columns], np.concatenate(values, axis=1)[:, order])
