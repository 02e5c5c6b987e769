"""Table of runs on the page: from an address to columns, links and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from engine.events.vocabulary import RunState
from webapp.experiments.models import Run
from webapp.experiments.run_progress import RunProgress, progress_of
from webapp.experiments.runs_list.listing import (
    COLUMNS,
    DEFAULT_COLUMNS,
    MOST_METRICS,
    Column,
    InvalidQuery,
    RunQuery,
    minutes_of,
    recipes_of,
)


@dataclass(frozen=True, slots=True)
class Heading:
    """Header of a column: the address of its link, and its current sort order."""

    column: Column
    link: str | None
    order: str
    """ascending, descending or none."""


@dataclass(frozen=True, slots=True)
class Row:
    run: Run
    recipe: str
    progress: RunProgress | None
    metrics: list[float | None]


@dataclass(frozen=True, slots=True)
class RunsTable:
    query: RunQuery
    name_heading: Heading
    headings: list[Heading]
    rows: list[Row]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns to choose from."""
        return COLUMNS

    @property
    def shown(self) -> dict[str, bool]:
        """Whether a column is among the headings, by key; the cells are in their order."""
        keys = {heading.column.key for heading in self.headings}
        return {column.key: column.key in keys for column in COLUMNS}

    @property
    def address(self) -> str:
        return self.query.address()

    @property
    def by_state(self) -> dict[str, str]:
        """Address for each state, and for all ("")."""
        return {state: self.query.address(state=state) or "?" for state in ("", *RunState)}


def parse_query(fields: QueryDict) -> RunQuery:
    """Returns the query of an address. Raises `InvalidQuery` for an unknown value."""
    project = fields.get("project", "")
    if project and not (project.isascii() and project.isdigit() and len(project) < 18):
        raise InvalidQuery("project", project, "give the number of a project, or none")
    metrics = tuple(dict.fromkeys(name for name in fields.getlist("metric") if name))
    if len(metrics) > MOST_METRICS or any("\0" in name or len(name) > 200 for name in metrics):
        raise InvalidQuery("metric", len(metrics), f"give at most {MOST_METRICS} names of metrics")
    chosen = tuple(dict.fromkeys(fields.getlist("col")))
    return RunQuery(
        state=fields.get("state", ""),
        q=fields.get("q", "").strip(),
        tag=fields.get("tag", "").strip(),
        project=int(project) if project else None,
        starred=fields.get("starred") == "1",
        archived=fields.get("archived") == "1",
        sort=fields.get("sort") or "-created",
        columns=tuple(key for key in chosen if key) if chosen else DEFAULT_COLUMNS,
        metrics=metrics,
    )


def runs_table(query: RunQuery, runs: Sequence[Run]) -> RunsTable:
    """Returns the requested columns, with one row for each of the runs."""
    shown = [column for column in COLUMNS if column.key in query.columns]
    metrics = _newest(query, runs)
    recipes = recipes_of(runs) if "recipe" in query.columns else {}
    minutes = minutes_of(runs) if "progress" in query.columns else {}
    rows = [
        Row(
            run,
            recipes.get(run.pk) or "",
            progress_of(run, minutes.get(run.pk)),
            [metrics.get((run.pk, name)) for name in query.metrics],
        )
        for run in runs
    ]
    name = _heading(query, Column("name", "Run", "name"))
    return RunsTable(query, name, [_heading(query, column) for column in shown], rows)


def _heading(query: RunQuery, column: Column) -> Heading:
    """Returns a column's header. Its link sorts by it, descending; a second time, ascending."""
    if column.sort is None:
        return Heading(column, None, "none")
    order = {column.sort: "ascending", f"-{column.sort}": "descending"}.get(query.sort, "none")
    first = column.sort if column.sort in ("name", "by", "state") else f"-{column.sort}"
    other = column.sort if first.startswith("-") else f"-{column.sort}"
    return Heading(
        column, query.address(sort=other if query.sort == first else first) or "?", order
    )


def _newest(query: RunQuery, runs: Sequence[Run]) -> dict[tuple[Any, str], float]:
    if not query.metrics or not runs:
        return {}
    runs_with = Run.objects.filter(pk__in=[run.pk for run in runs], metrics__name__in=query.metrics)
    rows = runs_with.values_list("pk", "metrics__name", "metrics__value")
    return {(run, name): value for run, name, value in rows}
