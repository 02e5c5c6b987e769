"""Data of a chart: series of runs in the server's buckets, as every chart of the site has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from engine.config.names import shown_name
from webapp.experiments.models import Run
from webapp.reports.directives import BlockError, Directive
from webapp.reports.embeds.readers import Reader, common
from webapp.telemetry.models import Metric
from webapp.telemetry.series.reads import Axis, Range, buckets, metrics_of

MOST_LINES = 12
POINTS = 200
"""Buckets of a line: more cannot be distinguished at the width of a report."""
_NAMED = 8
"""Series that a message lists, those with similar names first."""
_SEARCHED = 200
"""Series whose names are compared for it: every visitor waits for that."""


def chart_data(directive: Directive, reader: Reader) -> dict[str, Any]:
    """Returns {axis, lines: [{label, metric, x, mean, least, most, breaks}], left_out}
    and `readers.common`. `breaks` are the indices of points before which the line is interrupted.

    A series is a metric of that name, and all its parts (`reward`: also `reward.oak`). Raises
    `BlockError`.
    """
    runs, missing = reader.runs_of(directive)
    metrics = {
        run.pk: [one for one in metrics_of(run).order_by("pk") if reader.sees_series(one.name)]
        for run in runs
    }
    everything = [metric for run in runs for metric in metrics[run.pk]]
    missing += [
        unknown for name in directive.series if (unknown := _unknown(directive, name, everything))
    ]
    chosen = [
        (run, metric)
        for name in directive.series
        for run in runs
        for metric in metrics[run.pk]
        if is_part(metric.name, name)
    ]
    chosen = list(dict.fromkeys(chosen))
    if not chosen:
        raise missing[-1]
    return {
        **common(directive, runs, missing),
        "axis": directive.axis.value,
        "lines": list(_lines(chosen[:MOST_LINES], directive.axis, runs)),
        "left_out": max(0, len(chosen) - MOST_LINES),
    }


def is_part(metric: str, series: str) -> bool:
    """Returns whether a metric is this series or a part of it."""
    return metric == series or metric.startswith(f"{series}.")


def _lines(
    chosen: Sequence[tuple[Run, Metric]], axis: Axis, runs: Sequence[Run]
) -> Iterator[dict[str, Any]]:
    names = {metric.name for _, metric in chosen}
    for run, metric in chosen:
        response = buckets(metric, Range(axis, points=POINTS))
        columns = response["buckets"]
        name = shown_name(metric.name)  # agents of before may have any name
        parts = [str(run)] * (len(runs) > 1) + [name] * (len(names) > 1 or len(runs) == 1)
        ends = zip(columns["from"], columns["to"], strict=True)
        yield {
            "label": " · ".join(parts),
            "metric": metric.name,
            "x": [(first + last) / 2 for first, last in ends],
            "mean": list(columns["mean"]),
            "least": list(columns["min"]),
            "most": list(columns["max"]),
            "breaks": _breaks(columns["at"], response["gaps"]["at"]),
        }


def _breaks(filled: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """Returns the indices of the points before which the line breaks."""
    found = {bisect_left(filled, at) for at in gaps}
    return sorted(index for index in found if 0 < index < len(filled))


def _unknown(directive: Directive, name: str, metrics: Sequence[Metric]) -> BlockError | None:
    if any(is_part(metric.name, name) for metric in metrics):
        return None
    names = list(dict.fromkeys(metric.name for metric in metrics))
    if not names:
        return directive.error("series", name, "its runs have reported no numbers yet")
    nearest = get_close_matches(name, names[:_SEARCHED], _NAMED)
    names.sort(key=lambda one: one.startswith("system."))
    listed = list(dict.fromkeys([*nearest, *names]))[:_NAMED]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return directive.error("series", name, f"its runs report {', '.join(listed)}{more}")
