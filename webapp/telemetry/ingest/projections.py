"""Projection of events onto the run's row. Pure: row values and events in, changes out.

Invariant: folding a log in one batch or in many gives the same row. State transitions belong to
`experiments.services`, except that the engine's `run.state` makes a starting run running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.events.vocabulary import Event

Row = dict[str, Any]

FIELDS = (
    "state",
    "step",
    "steps",
    "waiting_name",
    "waiting_since",
    "waiting_deadline",
    "error",
    "result",
    "tags",
    "notes",
)
"""Columns that a projection reads and may change."""
KEPT_WARNINGS = 50
"""Newest health warnings in `result["health"]`, each with the step of its end, `closed`."""


def project(row: Row, events: Iterable[Event]) -> Row:
    """Returns the row after these events; `row` itself is unchanged."""
    after = {**row, "result": dict(row["result"])}
    for event in events:
        if apply := _PROJECTIONS.get(event.kind):
            apply(after, event)
    return after


def _text(value: str) -> str:
    # A text column cannot hold NUL.
    return value.replace("\0", "\ufffd")


def moment(seconds: float) -> datetime:
    """Returns Unix seconds as an aware time."""
    return datetime.fromtimestamp(seconds, UTC)


def _state(row: Row, event: Event) -> None:
    if event.payload["state"] == "running" and row["state"] == "starting":
        row["state"] = "running"


def _waiting(row: Row, event: Event) -> None:
    name = event.payload["name"]
    since = moment(event.time) if name else None
    seconds = event.payload["deadline_seconds"]
    row["waiting_name"] = _text(name)[:200]
    row["waiting_since"] = since
    row["waiting_deadline"] = since + timedelta(seconds=seconds) if since and seconds else None


def _planned(row: Row, event: Event) -> None:
    row["steps"] = event.payload["steps"]


def _resumed(row: Row, event: Event) -> None:
    last = row["step"] = event.payload["step"]
    row["result"].pop("answer", None)
    if "health" in row["result"]:
        row["result"]["health"] = [
            {**one, "closed": closed if (closed := one["closed"]) and closed <= last else None}
            for one in row["result"]["health"]
            if one["step"] <= last
        ]


def _step(row: Row, event: Event) -> None:
    row["step"] = event.payload["step"]
    for name in ("solved", "reward"):
        row["result"][name] = event.payload.get(name)
    # A sum, of which the newest known value counts; the others are the step's own.
    if (seconds := event.payload.get("training_seconds")) is not None:
        row["result"]["training_seconds"] = seconds


def _logged(row: Row, event: Event) -> None:
    row["step"] = max(row["step"], event.payload["step"])


def _described(row: Row, event: Event) -> None:
    given = event.payload
    if "summary" in given:
        row["result"]["summary"] = {**row["result"].get("summary", {}), **given["summary"]}
    for name in ("tags", "notes"):
        if name in given:
            row[name] = given[name]


def _evaluation(row: Row, event: Event) -> None:
    fields = ("step", "agents", "standard_errors", "problems", "tree", "samples")
    summary = {name: event.payload.get(name) for name in fields}
    split = event.payload["split"]
    evaluations = dict(row["result"].get(split, {}))
    # Before the first step, and the latest: a list compares these two.
    evaluations["before" if event.payload["step"] == 0 else "latest"] = summary
    row["result"][split] = evaluations


def _health(row: Row, event: Event) -> None:
    fields = ("rule", "agent", "title", "seen", "since", "step")
    one = {name: event.payload.get(name, "") for name in fields}
    before = row["result"].get("health", [])
    if event.payload["state"] == "opened":
        row["result"]["health"] = [*before, {**one, "closed": None}][-KEPT_WARNINGS:]
        return
    key = one["rule"], one["agent"]
    row["result"]["health"] = [
        {**other, "closed": one["step"]}
        if other["closed"] is None and (other["rule"], other["agent"]) == key
        else other
        for other in before
    ]


def _answer(row: Row, event: Event) -> None:
    fields = ("agent", "passed", "tests", "private_passed", "ended", "nodes", "tokens", "seconds")
    row["result"]["answer"] = {"node": event.node} | {
        name: event.payload.get(name) for name in fields
    }


def _error(row: Row, event: Event) -> None:
    row["error"] = row["error"] or _text(event.payload["message"])


_PROJECTIONS: dict[str, Callable[[Row, Event], None]] = {
    "run.state": _state,
    "run.waiting": _waiting,
    "run.planned": _planned,
    "run.resumed": _resumed,
    "step.end": _step,
    "metric.logged": _logged,
    "run.described": _described,
    "eval.result": _evaluation,
    "health": _health,
    "search.answer": _answer,
    "error": _error,
}
