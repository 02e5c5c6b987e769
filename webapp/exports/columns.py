"""Contents of an export's tables: the columns of each, and its rows run by run.

Every figure is the stored one, in full. Of a resumed run, repeated steps are reported once: trees
and evaluations of steps after its checkpoint are left out, as they are from its series.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from django.db import connection

from webapp.experiments.models import Run
from webapp.experiments.tracked_runs import config_of
from webapp.exports.models import Table
from webapp.telemetry.models import Clock
from webapp.telemetry.series.metrics import catch_up

BATCH_ROWS = 2000
"""Rows that a server-side cursor fetches at a time."""


class Kind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    MOMENT = "moment"
    """A time zone aware datetime."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind


Row = Sequence[Any]
"""One value for each column, of its kind, or None."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table: its columns, and the iterator of one run's rows."""

    columns: tuple[Column, ...]
    rows: Callable[[Run], Iterator[Row]]
    prepare: Callable[[uuid.UUID], None] = lambda run_id: None
    """Called for each run before anything is read."""


def _columns(**kinds: str) -> tuple[Column, ...]:
    return tuple(Column(name, Kind(kind)) for name, kind in kinds.items())


_OF_RUN = {"run": "text", "name": "text", "number": "integer"}
_RUNS = _columns(
    **_OF_RUN, project="text", recipe="text", state="text", seed="integer", variant="text",
    parent="text", parent_step="integer", outside="flag", created="moment", created_by="text",
    queued="moment", started="moment", finished="moment", step="integer", steps="integer",
    reward="number", solved="number", error="text", tags="text", notes="text", archived="moment",
    events="integer", config="text",
)  # fmt: skip
_METRICS = _columns(
    **_OF_RUN, metric="text", position="integer", seq="integer", step="integer", seconds="number",
    tokens="integer", nodes="integer", value="number",
)  # fmt: skip
_NODES = _columns(
    **_OF_RUN, tree="integer", node="integer", step="integer", problem="text", agent="text",
    parent="integer", depth="integer", verdict="text", score="number", fraction="number",
    shaped="number", advantage="number", tokens="integer", stop="text", mean_logprob="number",
    policy_version="integer", seconds="number", opened_seq="integer", closed_seq="integer",
    error="text", program="text",
)  # fmt: skip
_EVALUATIONS = _columns(
    **_OF_RUN, seq="integer", time="moment", step="integer", split="text", figure="text",
    value="number", standard_error="number", problems="integer", tree_nodes="integer",
    rollouts="integer", tokens="integer", seconds="number",
)  # fmt: skip
_LOGGED = _columns(
    **_OF_RUN, seq="integer", time="moment", step="integer", kind="text", logged="text",
    value="text",
)  # fmt: skip

_BLOCKS = """
SELECT metric.name, block.index * 32, block.seq, block.step, block.time, block.tokens, block.nodes,
       block.value
FROM telemetry_metric AS metric JOIN telemetry_block AS block ON block.metric_id = metric.id
WHERE metric.run_id = %(run)s ORDER BY metric.id, block.index
"""
_NOT_SUPERSEDED = """NOT EXISTS (
    SELECT FROM telemetry_event AS resumed
    WHERE resumed.run_id = %(run)s AND resumed.kind = 'run.resumed' AND resumed.seq > {event}.seq
      AND (resumed.payload->>'step')::numeric < ({step}.payload->>'step')::numeric)"""
_OF_NODES = f"""
SELECT jsonb_build_array(
    closed.tree, closed.node, planted.payload->'step', planted.payload->'problem',
    opened.payload->'agent', opened.payload->'parent', opened.payload->'depth',
    closed.payload->'verdict', closed.payload->'score', closed.payload->'fraction',
    credited.payload->'shaped', credited.payload->'advantage', closed.payload->'tokens',
    closed.payload->'stop', closed.payload->'mean_logprob', closed.payload->'policy_version',
    closed.payload->'seconds', opened.seq, closed.seq, closed.payload->'error',
    closed.payload->'program')::text
FROM telemetry_event AS closed
LEFT JOIN telemetry_event AS planted ON planted.run_id = %(run)s AND planted.kind = 'tree.open'
    AND planted.tree = closed.tree
LEFT JOIN telemetry_event AS opened ON opened.run_id = %(run)s AND opened.kind = 'node.open'
    AND opened.tree = closed.tree AND opened.node = closed.node
LEFT JOIN telemetry_event AS credited ON credited.run_id = %(run)s
    AND credited.kind = 'node.credit' AND credited.tree = closed.tree
    AND credited.node = closed.node
WHERE closed.run_id = %(run)s AND closed.kind = 'node.close'
  AND {_NOT_SUPERSEDED.format(event="closed", step="planted")}
ORDER BY closed.seq
"""
_OF_EVALUATIONS = f"""
SELECT jsonb_build_array(result.seq, extract(epoch FROM result.time), result.payload)::text
FROM telemetry_event AS result
WHERE result.run_id = %(run)s AND result.kind = 'eval.result'
  AND {_NOT_SUPERSEDED.format(event="result", step="result")}
ORDER BY result.seq
"""

_OF_LOGGED = f"""
SELECT jsonb_build_array(
    event.seq, extract(epoch FROM event.time), event.payload->'step', logged.kind, logged.name,
    event.payload->logged.kind->logged.name)::text
FROM telemetry_loggedname AS logged
JOIN telemetry_loggedvalue AS held ON held.logged_id = logged.id
JOIN telemetry_event AS event ON event.run_id = logged.run_id AND event.seq = held.seq
WHERE logged.run_id = %(run)s AND {_NOT_SUPERSEDED.format(event="event", step="event")}
ORDER BY event.seq, logged.kind, logged.name
"""


def _read(query: str, run: Run) -> Iterator[tuple[Any, ...]]:
    """Rows by a server-side cursor: memory does not grow with their number."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(query, {"run": run.pk})
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield from rows


def _of(run: Run) -> tuple[str, str, int]:
    return str(run.pk), run.experiment.name, run.number


def _run_row(run: Run) -> Iterator[Row]:
    yield (
        *_of(run), run.project.name, run.config.get("recipe"), run.state, run.seed,
        _json(run.variant), run.parent_id and str(run.parent_id), run.parent_step, run.outside,
        run.created, run.created_by.username, run.queued_at, run.started_at, run.finished_at,
        run.step, run.steps, run.result.get("reward"), run.result.get("solved"), run.error,
        " ".join(run.tags), run.notes, run.archived_at, run.head_seq, _json(config_of(run)),
    )  # fmt: skip


def _points(run: Run) -> Iterator[Row]:
    of = _of(run)
    for name, first, *columns in _read(_BLOCKS, run):
        for position, point in enumerate(zip(*columns, strict=True), start=first):
            yield *of, name, position, *point


def _nodes(run: Run) -> Iterator[Row]:
    of = _of(run)
    for (row,) in _read(_OF_NODES, run):
        yield *of, *msgspec.json.decode(row)


def _evaluations(run: Run) -> Iterator[Row]:
    of = _of(run)
    for (row,) in _read(_OF_EVALUATIONS, run):
        seq, seconds, payload = msgspec.json.decode(row)
        at = (seq, datetime.fromtimestamp(seconds, UTC), payload["step"], payload["split"])
        rest = [payload.get(name) for name in ("problems", "tree_nodes", "rollouts", "tokens",
                                               "seconds")]  # fmt: skip
        for figure, value, error in _figures(payload):
            yield *of, *at, figure, value, error, *rest


def _logged(run: Run) -> Iterator[Row]:
    """Texts, tables, histograms and numbers that are not finite; finite ones are metrics."""
    for (text,) in _read(_OF_LOGGED, run):
        seq, time, step, kind, name, value = msgspec.json.decode(text)
        moment = datetime.fromtimestamp(time, UTC)
        shown = value if isinstance(value, str) else _json(value)
        yield (*_of(run), seq, moment, step, kind, name, shown)


def _figures(payload: dict[str, Any]) -> Iterator[tuple[str, float | None, float | None]]:
    """Yields (figure, value, standard error); None where an external engine measured none."""
    errors = payload.get("standard_errors") or {}
    for agent, value in (payload.get("agents") or {}).items():
        yield f"pass@1/{agent}", value, errors.get(agent)
    for name in ("tree", "samples"):
        if payload.get(name) is not None:
            yield f"{name}/pass@1", payload[name], None


def _with_series(run_id: uuid.UUID) -> None:
    if not Clock.objects.filter(pk=run_id).exists():
        catch_up(run_id)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


SOURCES = {
    Table.RUNS: Source(_RUNS, _run_row),
    Table.METRICS: Source(_METRICS, _points, _with_series),
    Table.NODES: Source(_NODES, _nodes),
    Table.EVALUATIONS: Source(_EVALUATIONS, _evaluations),
    Table.LOGGED: Source(_LOGGED, _logged),
}
