"""Metrics from events, written in the transaction that stores the events.

Invariants: callers hold the run's row lock, so positions are assigned once, and an event sent twice
is projected once. A resumed run discards the points of the steps that it repeats, which `TakenBack`
then holds; it keeps those of its machine.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from django.db import connection, transaction

from engine.events.vocabulary import Event
from webapp.experiments.models import Run
from webapp.scalars import SCALAR_KINDS, SYSTEM, Scalars
from webapp.telemetry.models import Clock, TakenBack
from webapp.telemetry.quality import ClosedNode, quality
from webapp.telemetry.series import blocks
from webapp.telemetry.series.buffer import COLUMNS, Moment, PointBuffer
from webapp.telemetry.series.packing import FANOUT

KINDS = frozenset((*SCALAR_KINDS, "step.start", "node.close", "run.resumed"))
"""Kinds of events that metrics are computed from."""

_LARGEST = 2**62
_STORED = """
SELECT seq, extract(epoch FROM time)::float8, kind,
       CASE kind WHEN 'node.close' THEN jsonb_build_object('tokens', payload->'tokens')
       ELSE payload END::text
FROM telemetry_event WHERE run_id = %s AND kind = ANY(%s) AND seq > %s AND seq <= %s
ORDER BY seq LIMIT 5000
"""
# No join, whose plan would depend on statistics: a new table has none yet.
_NODES = """
SELECT ended.seq, grown.tree, node.opened->>'parent', node.opened->>'depth',
       node.closed->>'score', node.closed->>'verdict', node.closed->>'stop',
       node.closed->>'tokens', md5(node.closed->>'program'),
       node.closed->'tests' @? '$[0]'
           AND NOT node.closed->'tests' @? '$[*] ? (@.verdict != "passed")',
       node.closed->>'no_program'
FROM unnest(%(ends)s::bigint[]) AS ended (seq)
CROSS JOIN LATERAL (
    SELECT coalesce(max(seq), 0) AS seq FROM telemetry_event
    WHERE run_id = %(run)s AND kind = 'step.start' AND seq < ended.seq
) AS began
CROSS JOIN LATERAL (
    SELECT tree FROM telemetry_event
    WHERE run_id = %(run)s AND kind = 'tree.close' AND seq > began.seq AND seq < ended.seq
    OFFSET 0
) AS grown
CROSS JOIN LATERAL (
    SELECT max(seq) FILTER (WHERE kind = 'node.close') AS seq,
           (array_agg(payload) FILTER (WHERE kind = 'node.open'))[1] AS opened,
           (array_agg(payload) FILTER (WHERE kind = 'node.close'))[1] AS closed
    FROM telemetry_event
    WHERE run_id = %(run)s AND tree = grown.tree AND seq < ended.seq AND node IS NOT NULL
    GROUP BY node
) AS node
WHERE node.closed IS NOT NULL AND node.opened IS NOT NULL
ORDER BY ended.seq, node.seq
"""
_KEPT_POINTS = f"""
SELECT metric.id, coalesce((
    SELECT block.index * {FANOUT} + newest.position
    FROM telemetry_block AS block, LATERAL (
        SELECT position FROM unnest(block.step) WITH ORDINALITY AS point (step, position)
        WHERE point.step <= %(step)s ORDER BY position DESC LIMIT 1
    ) AS newest
    WHERE block.metric_id = metric.id ORDER BY block.index DESC LIMIT 1), 0)
FROM telemetry_metric AS metric
WHERE run_id = %(run)s AND step > %(step)s AND NOT starts_with(name, %(system)s)
"""
_TAKEN_BACK = f"""
INSERT INTO telemetry_takenback (run_id, name, taken_at, {", ".join(COLUMNS)})
SELECT metric.run_id, metric.name, %(at)s,
       {", ".join(f"array_agg(point.{column} ORDER BY position)" for column in COLUMNS)}
FROM telemetry_metric AS metric JOIN telemetry_block AS block ON block.metric_id = metric.id,
     unnest({", ".join(f"block.{column}" for column in COLUMNS)})
     WITH ORDINALITY AS point ({", ".join(COLUMNS)}, position)
WHERE metric.id = %(metric)s AND block.index >= %(kept)s / {FANOUT}
  AND block.index * {FANOUT} + position > %(kept)s
GROUP BY metric.run_id, metric.name, block.index
"""
_TOTALS = """
SELECT coalesce(max(tokens), 0), coalesce(max(nodes), 0) FROM telemetry_metric
WHERE run_id = %s AND NOT starts_with(name, %s)
"""


def recorder(run: Run, events: Sequence[Event]) -> Recorder | None:
    """Returns a recorder of the numbers of these events, which follow `run.head_seq`; None if they
    report none. The caller holds the run's row lock."""
    if not any(event.kind in KINDS for event in events):
        return None
    clock = Clock.objects.filter(pk=run.pk).first() or _from_the_log(run)
    return Recorder(clock or Clock(run=run, origin=events[0].time))


def parts(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yields the same events, cut before each `run.resumed`: the points that it discards must be
    stored by then."""
    resumed = [index for index, event in enumerate(events) if event.kind == "run.resumed"]
    cuts = sorted({0, *resumed, len(events)})
    return (events[first:after] for first, after in pairwise(cuts))


@transaction.atomic
def catch_up(run_id: uuid.UUID) -> None:
    """Stores the metrics of a run whose events were stored before metrics existed."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if not Clock.objects.filter(pk=run_id).exists():
        _from_the_log(run)


def _from_the_log(run: Run) -> Clock | None:
    """Stores the metrics of all events up to `run.head_seq` and returns the clock; None if there
    are no events."""
    first = run.events.order_by("seq").values_list("time", flat=True).first()
    if first is None or not run.head_seq:
        return None
    TakenBack.objects.filter(run=run).delete()
    clock = Clock(run=run, origin=first.timestamp())
    clock.save(force_insert=True)
    writer = Recorder(clock)
    for part in (part for events in _stored(run) for part in parts(events)):
        writer.begin(part[0])
        for event in part:
            writer.take(event)
        writer.store()
    return clock


def _stored(run: Run) -> Iterator[list[Event]]:
    after = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_STORED, [run.pk, list(KINDS), after, run.head_seq])
            rows = cursor.fetchall()
        if not rows:
            return
        yield [
            Event(seq, time, kind, None, None, json.loads(payload))
            for seq, time, kind, payload in rows
        ]
        after = rows[-1][0]


class Recorder:
    """Adds the numbers of events, part by part, to the metrics of one run.

    `take` does not query the database, so it may be called while the events are being stored;
    `begin` is called before that, `store` after it.
    """

    def __init__(self, clock: Clock):
        self.clock = clock
        self.buffer = PointBuffer()
        self._scalars = Scalars()
        self._ended: dict[int, Moment] = {}
        """By seq, the run's position at the ends of steps whose trees are not read yet."""

    def begin(self, first: Event) -> None:
        """Prepares for a part of the log that starts with this event."""
        if first.kind == "run.resumed":
            _take_back(self.clock, _whole(first.payload.get("step")), first.seq)

    def take(self, event: Event) -> None:
        clock, payload = self.clock, event.payload
        if event.kind == "step.start":
            clock.step = _whole(payload.get("step"))
        elif event.kind == "node.close":
            clock.nodes += 1
            clock.tokens += _whole(payload.get("tokens"))
        elif event.kind in SCALAR_KINDS:
            self._record_scalars(event)

    def _record_scalars(self, event: Event) -> None:
        clock = self.clock
        step = _whole(event.payload.get("step", clock.step))
        moment = (event.seq, step, event.time - clock.origin, clock.tokens, clock.nodes)
        self.buffer.add(moment, *self._scalars.of(event.kind, event.payload))
        if event.kind == "step.end":
            self._ended[event.seq] = moment

    def store(self) -> None:
        for seq, nodes in _nodes_of_steps(self.clock.run_id, list(self._ended)):
            metrics = dict(quality(nodes))
            self.buffer.add(self._ended[seq], tuple(metrics), list(metrics.values()))
        blocks.store(self.clock.run_id, self.buffer)
        self.clock.save()
        self.buffer, self._ended = PointBuffer(), {}


def _whole(value: Any) -> int:
    """Returns a count that the database can store, whatever an external engine sent."""
    is_number = isinstance(value, int | float) and value == value
    return int(min(max(value, 0), _LARGEST)) if is_number else 0


def _nodes_of_steps(
    run_id: uuid.UUID, ends: list[int]
) -> Iterator[tuple[int, Iterator[ClosedNode]]]:
    """Yields, by the seq of a step's end, the nodes of the trees that were closed in that step."""
    if not ends:
        return
    with connection.cursor() as cursor:
        cursor.execute(_NODES, {"run": run_id, "ends": ends})
        fetched = cursor.fetchall()
    for seq, rows in groupby(fetched, key=itemgetter(0)):
        yield seq, (_node(*row) for _, *row in rows)


def _node(
    tree: int,
    parent: str | None,
    depth: str | None,
    score: str | None,
    verdict: str | None,
    stop: str | None,
    tokens: str | None,
    program: str | None,
    passes_public: bool | None,
    no_program: str | None,
) -> ClosedNode:
    return ClosedNode(
        tree=tree,
        parent=int(parent or 0),
        depth=int(depth or 1),
        score=None if score is None else float(score),
        verdict=verdict or "unknown",
        stop=stop or "unknown",
        tokens=None if tokens is None else int(float(tokens)),
        program=program or "",
        passes_public=bool(passes_public),
        no_program=no_program or "",
    )


def _take_back(clock: Clock, step: int, at: int) -> None:
    """Discards, by the event `at`, the points of steps after `step`, which are repeated."""
    with connection.cursor() as cursor:
        cursor.execute(_KEPT_POINTS, {"run": clock.run_id, "step": step, "system": SYSTEM})
        for metric, kept in cursor.fetchall():
            cursor.execute(_TAKEN_BACK, {"metric": metric, "kept": kept, "at": at})
            blocks.cut(cursor, metric, kept)
        cursor.execute(_TOTALS, [clock.run_id, SYSTEM])
        clock.tokens, clock.nodes = cursor.fetchone()
    clock.step = step
