"""Series of numbers, from events: written in the transaction that stores the events.

Invariants: callers hold the run's row lock, so positions are given out once, and what is stored
twice is projected once. A resumed run loses what was told of the steps that it does again; what its
machine was like then it keeps.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection, transaction

from engine.events import Event
from webapp.experiments.models import Run
from webapp.telemetry.models import Clock, Metric
from webapp.telemetry.quality import ClosedNode, quality
from webapp.telemetry.scalars import SYSTEM, scalars

FANOUT = 32
"""Points of a chunk of level 1, and chunks of a level in one of the next."""
LEVELS = 3

KINDS = ("step.start", "node.close", "step.end", "agent.update", "eval.result", "system.sample",
         "run.resumed")  # fmt: skip
"""What series are made of."""

_LARGEST = 2**62
_STORED = """
SELECT seq, extract(epoch FROM time)::float8, kind,
       CASE kind WHEN 'node.close' THEN jsonb_build_object('tokens', payload->'tokens')
       ELSE payload END::text
FROM telemetry_event WHERE run_id = %s AND kind = ANY(%s) AND seq > %s AND seq <= %s
ORDER BY seq LIMIT 5000
"""
_NODES = """
WITH trees AS MATERIALIZED (
    SELECT tree FROM telemetry_event
    WHERE run_id = %(run)s AND kind = 'tree.close' AND seq < %(seq)s AND seq > coalesce((
        SELECT max(seq) FROM telemetry_event
        WHERE run_id = %(run)s AND kind = 'step.start' AND seq < %(seq)s), 0)
)
-- Tree by tree: joined at once, a plan without statistics reads every node of the run per node.
SELECT told.* FROM trees, LATERAL (
    SELECT event.tree, node, kind, payload->>'parent', payload->>'depth', payload->>'score',
           payload->>'verdict', payload->>'stop', payload->>'tokens', md5(payload->>'program'), seq
    FROM telemetry_event AS event
    WHERE run_id = %(run)s AND event.tree = trees.tree AND kind IN ('node.open', 'node.close')
      AND seq < %(seq)s OFFSET 0
) AS told ORDER BY told.seq
"""
_COPY = (
    "COPY telemetry_point (metric_id, position, seq, step, time, tokens, nodes, value)"
    " FROM STDIN (FORMAT BINARY)"
)
_TYPES = ("int8", "int8", "int8", "int8", "float8", "int8", "int8", "float8")
_NAMED = """
INSERT INTO telemetry_metric (run_id, name, points, value, step, time, tokens, nodes)
SELECT %s, name, 0, 0, 0, 0, 0, 0 FROM unnest(%s::text[]) AS name
"""
_NEWEST = """
UPDATE telemetry_metric AS metric
SET points = last.position + 1, value = last.value, step = last.step, time = last.time,
    tokens = last.tokens, nodes = last.nodes
FROM unnest(%s::bigint[], %s::bigint[]) AS told (id, position)
JOIN telemetry_point AS last ON last.metric_id = told.id AND last.position = told.position
WHERE metric.id = told.id
"""
_AXES = ("step", "time", "tokens", "nodes")
_SPANS = ", ".join(f"{axis}_from, {axis}_to" for axis in _AXES)
_OF_POINTS = ", ".join(f"min({axis}), max({axis})" for axis in _AXES)
_OF_CHUNKS = ", ".join(f"min({axis}_from), max({axis}_to)" for axis in _AXES)
_CHUNKS = f"""
INSERT INTO telemetry_chunk (metric_id, level, index, least, most, total, {_SPANS})
SELECT whole.id, %(level)s, part.*
FROM unnest(%(ids)s::bigint[], %(from)s::bigint[], %(to)s::bigint[])
    AS whole (id, first, after), LATERAL (
    {{part}}
) AS part
"""
_FROM_POINTS = _CHUNKS.format(
    part=f"""
    SELECT position / {FANOUT} AS index, min(value), max(value), sum(value), {_OF_POINTS}
    FROM telemetry_point WHERE metric_id = whole.id
      AND position >= whole.first * {FANOUT} AND position < whole.after * {FANOUT}
    GROUP BY 1"""
)
_FROM_CHUNKS = _CHUNKS.format(
    part=f"""
    SELECT index / {FANOUT} AS up, min(least), max(most), sum(total), {_OF_CHUNKS}
    FROM telemetry_chunk WHERE metric_id = whole.id AND level = %(level)s - 1
      AND index >= whole.first * {FANOUT} AND index < whole.after * {FANOUT}
    GROUP BY 1"""
)
_KEPT = """
SELECT metric.id, coalesce((
    SELECT position + 1 FROM telemetry_point
    WHERE metric_id = metric.id AND step <= %(step)s ORDER BY position DESC LIMIT 1), 0)
FROM telemetry_metric AS metric
WHERE run_id = %(run)s AND step > %(step)s AND NOT starts_with(name, %(system)s)
"""
_STOOD = """
SELECT coalesce(max(tokens), 0), coalesce(max(nodes), 0) FROM telemetry_metric
WHERE run_id = %s AND NOT starts_with(name, %s)
"""


def record(run: Run, events: Sequence[Event]) -> None:
    """Add what these events tell, which follow `run.head_seq`; the caller holds the row's lock."""
    if not any(event.kind in KINDS for event in events):
        return
    clock = Clock.objects.filter(pk=run.pk).first() or _from_the_log(run)
    if clock is None:
        clock = Clock(run=run, origin=events[0].time)
    _Writer(clock).add(events)


@transaction.atomic
def catch_up(run_id: uuid.UUID) -> None:
    """Make the series of a run whose events were stored before there were any."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if not Clock.objects.filter(pk=run_id).exists():
        _from_the_log(run)


def _from_the_log(run: Run) -> Clock | None:
    """Series of all that is stored up to `run.head_seq`; None if that is nothing."""
    first = run.events.order_by("seq").values_list("time", flat=True).first()
    if first is None or not run.head_seq:
        return None
    clock = Clock(run=run, origin=first.timestamp())
    clock.save(force_insert=True)
    for events in _stored(run):
        _Writer(clock).add(events)
    return clock


def _stored(run: Run) -> Iterator[list[Event]]:
    after = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_STORED, [run.pk, list(KINDS), after, run.head_seq])
            found = cursor.fetchall()
        if not found:
            return
        yield [
            Event(seq, time, kind, None, None, json.loads(payload))
            for seq, time, kind, payload in found
        ]
        after = found[-1][0]


class _Writer:
    """Adds the numbers of some events, in their order, to the series of one run."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self.told: list[tuple[str, tuple[Any, ...]]] = []

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind in KINDS:
                self._take(event)
        self._flush()
        self.clock.save()

    def _take(self, event: Event) -> None:
        clock, payload = self.clock, event.payload
        if event.kind == "run.resumed":
            self._flush()
            _take_back(clock, _whole(payload.get("step")))
        elif event.kind == "step.start":
            clock.step = _whole(payload.get("step"))
        elif event.kind == "node.close":
            clock.nodes += 1
            clock.tokens += _whole(payload.get("tokens"))
        else:
            step = _whole(payload.get("step", clock.step))
            self._tell(event, step, scalars(event.kind, payload))
        if event.kind == "step.end":
            self._tell(event, step, quality(_nodes_of_step(clock.run_id, event.seq)))

    def _tell(self, event: Event, step: int, told: Iterable[tuple[str, float]]) -> None:
        clock = self.clock
        at = (event.seq, step, event.time - clock.origin, clock.tokens, clock.nodes)
        self.told += [(name, (*at, value)) for name, value in told]

    def _flush(self) -> None:
        if self.told:
            _store(self.clock.run_id, self.told)
            self.told = []


def _whole(value: Any) -> int:
    """A count that the database can hold, whatever another engine says."""
    known = isinstance(value, int | float) and value == value
    return int(min(max(value, 0), _LARGEST)) if known else 0


def _nodes_of_step(run_id: uuid.UUID, seq: int) -> Iterator[ClosedNode]:
    """Nodes of the trees that were closed in the step that ended with the event `seq`."""
    opened: dict[tuple[int, int], tuple[str | None, str | None]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NODES, {"run": run_id, "seq": seq})
        for tree, node, kind, parent, depth, *told, _ in cursor.fetchall():
            if kind == "node.open":
                opened[tree, node] = parent, depth
            elif place := opened.get((tree, node)):
                yield _closed_node(tree, *place, *told)


def _closed_node(
    tree: int,
    parent: str | None,
    depth: str | None,
    score: str | None,
    verdict: str | None,
    stop: str | None,
    tokens: str | None,
    program: str | None,
) -> ClosedNode:
    return ClosedNode(
        tree=tree,
        parent=int(parent or 0),
        depth=int(depth or 1),
        score=None if score is None else float(score),
        verdict=verdict or "unknown",
        stop=stop or "unknown",
        tokens=int(tokens or 0),
        program=program or "",
    )


def _store(run_id: uuid.UUID, told: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    counts = _counts(run_id, {name for name, _ in told})
    before = dict(counts.values())
    after = dict(before)
    ids = {name: number for name, (number, _) in counts.items()}
    with connection.cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            copy.set_types(_TYPES)
            for name, values in told:
                metric = ids[name]
                copy.write_row((metric, after[metric], *values))
                after[metric] += 1
        cursor.execute(_NEWEST, [list(after), [points - 1 for points in after.values()]])
        sum_up(cursor, before, after)


def _counts(run_id: uuid.UUID, names: set[str]) -> dict[str, tuple[int, int]]:
    """(id, points) of each of these metrics; those that are new are made."""

    def known() -> dict[str, tuple[int, int]]:
        rows = Metric.objects.filter(run=run_id, name__in=names)
        return {name: (pk, points) for name, pk, points in rows.values_list("name", "pk", "points")}

    found = known()
    if missing := sorted(names - found.keys()):
        with connection.cursor() as cursor:
            cursor.execute(_NAMED, [run_id, missing])
        found = known()
    return found


def sum_up(cursor: Any, before: dict[int, int], after: dict[int, int]) -> None:
    """Make the chunks that have become full; points of each metric by its id, before and after."""
    for level in range(1, LEVELS + 1):
        size = FANOUT**level
        full = [
            (metric, before[metric] // size, points // size)
            for metric, points in after.items()
            if before[metric] // size < points // size
        ]
        if not full:
            return
        ids, firsts, ends = (list(column) for column in zip(*full, strict=True))
        query = _FROM_POINTS if level == 1 else _FROM_CHUNKS
        cursor.execute(query, {"level": level, "ids": ids, "from": firsts, "to": ends})


def _take_back(clock: Clock, step: int) -> None:
    """Forget what was told of steps after `step`: they are done again."""
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, {"run": clock.run_id, "step": step, "system": SYSTEM})
        for metric, kept in cursor.fetchall():
            _cut(cursor, metric, kept)
        cursor.execute(_STOOD, [clock.run_id, SYSTEM])
        clock.tokens, clock.nodes = cursor.fetchone()
    clock.step = step


def _cut(cursor: Any, metric: int, kept: int) -> None:
    if not kept:
        for table in ("point", "chunk"):
            cursor.execute(f"DELETE FROM telemetry_{table} WHERE metric_id = %s", [metric])
        cursor.execute("DELETE FROM telemetry_metric WHERE id = %s", [metric])
        return
    cursor.execute(
        "DELETE FROM telemetry_point WHERE metric_id = %s AND position >= %s", [metric, kept]
    )
    for level in range(1, LEVELS + 1):
        cursor.execute(
            "DELETE FROM telemetry_chunk WHERE metric_id = %s AND level = %s AND index >= %s",
            [metric, level, kept // FANOUT**level],
        )
    cursor.execute(_NEWEST, [[metric], [kept - 1]])
