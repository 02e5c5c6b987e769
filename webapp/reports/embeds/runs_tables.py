"""Data of a table of runs, with the columns of the list of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import COLUMNS, RunQuery, matching_runs
from webapp.experiments.runs_list.table import Row, runs_table
from webapp.reports.directives import Directive
from webapp.reports.embeds.readers import Reader, common
from webapp.templatetags.grove import changes, figure, percent

MOST_ROWS = 50
DEFAULT_COLUMNS = ("state", "progress", "pass1", "solved", "created")


def runs_data(directive: Directive, reader: Reader) -> dict[str, Any]:
    """Returns {columns: [{key, label, number}], rows: [{id, name, cells}], left_out} and
    `readers.common`; the `key` of a metric is "". Raises `BlockError`."""
    if directive.runs:
        runs, missing = reader.runs_of(directive)
        left_out = 0
    else:
        runs, left_out = _selected(directive, reader)
        missing = []
    query = RunQuery(columns=directive.columns or DEFAULT_COLUMNS, metrics=directive.metrics)
    columns = [one for one in COLUMNS if one.key in query.columns]
    headings = [{"key": one.key, "label": one.label, "number": one.number} for one in columns]
    headings += [{"key": "", "label": name, "number": True} for name in query.metrics]
    return {
        **common(directive, runs, missing),
        "columns": headings,
        "rows": [
            {
                "id": str(row.run.pk),
                "name": str(row.run),
                "cells": [
                    *(_CELLS[one.key](row) for one in columns),
                    *(figure(value) for value in row.metrics),
                ],
            }
            for row in runs_table(query, runs).rows
        ],
        "left_out": left_out,
    }


def _selected(directive: Directive, reader: Reader) -> tuple[list[Run], int]:
    """The newest runs of the report's project with this experiment and tag, and how many more."""
    query = RunQuery(project=reader.project.pk, tag=directive.tag)
    runs = matching_runs(reader.user, query)
    if directive.experiment:
        runs = runs.filter(experiment__name=directive.experiment)
    count = runs.count()
    shown = [run for run in runs[:MOST_ROWS] if reader.sees(run, directive)]
    if not shown:
        name = "experiment" if directive.experiment or not directive.tag else "tag"
        value = getattr(directive, name)
        raise directive.error(name, value, "the report's project has no such runs")
    return shown, max(0, count - MOST_ROWS)


def _passed(row: Row) -> str:
    return ", ".join(
        f"{one['name']} {percent(one['before'])} → {percent(one['after'])}"
        for one in changes(row.run.result)
    )


_CELLS: dict[str, Callable[[Row], str]] = {
    "state": lambda row: row.run.run_state.label,
    "progress": lambda row: row.progress.text if row.progress else f"step {row.run.step}",
    "pass1": _passed,
    "solved": lambda row: percent(row.run.result.get("solved")),
    "reward": lambda row: percent(row.run.result.get("reward")),
    "tags": lambda row: ", ".join(row.run.tags),
    "seed": lambda row: str(row.run.seed),
    "recipe": lambda row: row.recipe,
    "by": lambda row: str(row.run.created_by),
    "created": lambda row: f"{row.run.created:%Y-%m-%d %H:%M}",
}
