"""The part of a figure's data that the guest of a link sees.

Invariant: a guest of a report sees of a run no more than a guest of the run does (`telemetry.
guests`): no load of the server, no names of members, no tags; whether the data are read now, were
frozen in the report, or were kept by the link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webapp.reports.directives import Directive
from webapp.telemetry import guests

_COLUMNS = frozenset({
    "state", "progress", "pass1", "solved", "reward", "seed", "recipe", "created",
})  # fmt: skip
"""Of tables of runs."""
_NOT_SHOWN = "links do not show it"


def shown_to_guests(directive: Directive, data: dict[str, Any]) -> dict[str, Any]:
    """Returns the data without what no link shows. Raises `BlockError` if nothing is left."""
    missing = [{**one, "value": ""} if one["name"] == "run" else one for one in data["missing"]]
    return _OF_KIND[data["kind"]](directive, {**data, "missing": missing})


def _chart(directive: Directive, data: dict[str, Any]) -> dict[str, Any]:
    lines = [line for line in data["lines"] if guests.shows_series(line["metric"])]
    if not lines:
        raise directive.error("series", directive.series[0], _NOT_SHOWN)
    return {**data, "lines": lines}


def _table(directive: Directive, data: dict[str, Any]) -> dict[str, Any]:
    kept = [index for index, column in enumerate(data["columns"]) if _shows_column(column)]
    return {
        **data,
        "columns": [data["columns"][index] for index in kept],
        "rows": [{**row, "cells": [row["cells"][index] for index in kept]} for row in data["rows"]],
    }


def _shows_column(column: dict[str, Any]) -> bool:
    if column["key"]:
        return column["key"] in _COLUMNS
    return guests.shows_series(column["label"])


def _tree(directive: Directive, data: dict[str, Any]) -> dict[str, Any]:
    return data


_OF_KIND: dict[str, Callable[[Directive, dict[str, Any]], dict[str, Any]]] = {
    "chart": _chart,
    "tree": _tree,
    "runs": _table,
}
