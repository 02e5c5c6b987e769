"""Queries of the stored log, as wire bytes. Callers have checked who may see the run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from channels.db import database_sync_to_async
from django.db import connection
from psycopg.types.json import Jsonb

from engine.events.vocabulary import KINDS
from webapp.experiments.models import Run
from webapp.telemetry.fold import KEPT_NAMES, fold
from webapp.telemetry.ingest import rows
from webapp.telemetry.models import Event
from webapp.telemetry.stream.view import View

STATE_STEPS = 2
"""Last steps of which a state holds all trees and nodes."""
TAIL_EVENTS = 200
"""Newest events per kind that a state holds, of kinds that repeat without end."""
PAGE = 500

_TAIL = ("log.line", "system.sample", "run.waiting")
_BULK = ("tree.open", "tree.close", "node.open", "node.close", "node.credit")
_OF_STEPS = ("step.start", *_BULK)
"""Kinds of which a state holds the events of the last steps."""
_BY_NODE = ("node.text", "tree.learned")
"""Large, and requested for one node at a time."""
_BY_RUN = ("eval.outcomes", "run.described")
"""Not part of a state: outcomes are large, and requested where runs are compared; what a program
says about its run is in the run's row."""

_BY_NAME = ("metric.logged",)
"""Kinds of which a state holds the newest event of each of the `KEPT_NAMES` newest names."""

_WHOLE = tuple(
    kind for kind in KINDS if kind not in _TAIL + _OF_STEPS + _BY_NODE + _BY_RUN + _BY_NAME
)

_TREE = f"""
{rows.SELECT} WHERE run_id = %(run)s AND tree = %(tree)s AND kind = ANY(%(bulk)s) AND seq <= %(seq)s
ORDER BY seq
"""

_LOGGED = """
SELECT event.seq, event.time, payload->'step', payload->%(kind)s->%(name)s
FROM telemetry_loggedname AS logged
JOIN telemetry_loggedvalue AS value ON value.logged_id = logged.id
JOIN telemetry_event AS event ON event.run_id = logged.run_id AND event.seq = value.seq
WHERE logged.run_id = %(run)s AND logged.kind = %(kind)s AND logged.name = %(name)s
  AND value.seq < %(before)s
ORDER BY value.seq DESC LIMIT %(limit)s
"""

_STEP = f"""
WITH span AS (
    -- A resumed run starts a step twice: its latest start counts. Trees are opened before the step
    -- after the next starts.
    SELECT max(seq) FILTER (WHERE payload->'step' = %(step)s) AS first,
           max(seq) FILTER (WHERE payload->'step' = %(after)s) AS until
    FROM telemetry_event
    WHERE run_id = %(run)s AND kind = 'step.start' AND seq <= %(seq)s
), opened AS (
    SELECT event.tree FROM telemetry_event AS event, span
    WHERE run_id = %(run)s AND kind = 'tree.open' AND payload->'step' = %(step)s
      AND event.seq BETWEEN span.first AND %(seq)s
      AND (span.until IS NULL OR span.until < span.first OR event.seq < span.until)
)
{rows.SELECT} WHERE run_id = %(run)s AND tree IN (SELECT tree FROM opened)
  AND kind = ANY(%(bulk)s) AND seq <= %(seq)s
ORDER BY seq
"""

_STATE = f"""
WITH cut AS (
    SELECT coalesce(min(seq), 0) AS seq FROM (
        -- A resumed run starts a step twice: its latest start counts.
        SELECT max(seq) AS seq FROM telemetry_event
        WHERE run_id = %(run)s AND kind = 'step.start' AND seq <= %(seq)s
        GROUP BY payload->'step' ORDER BY max(seq) DESC LIMIT {STATE_STEPS}
    ) AS latest
), tail AS (
    SELECT tail.* FROM unnest(%(tail)s::text[]) AS repeated (kind), LATERAL (
        {rows.SELECT} WHERE run_id = %(run)s AND event.kind = repeated.kind AND seq <= %(seq)s
        ORDER BY seq DESC LIMIT {TAIL_EVENTS}
    ) AS tail
)
{rows.SELECT} WHERE run_id = %(run)s AND kind = ANY(%(whole)s) AND seq <= %(seq)s
UNION ALL
SELECT * FROM tail
UNION ALL
{rows.SELECT} WHERE run_id = %(run)s AND seq IN (
    SELECT max(seq) FROM telemetry_event
    WHERE run_id = %(run)s AND kind = 'metric.logged' AND seq <= %(seq)s
  UNION
    (SELECT newest.seq FROM telemetry_loggedname AS logged, LATERAL (
        SELECT seq FROM telemetry_loggedvalue
        WHERE logged_id = logged.id AND seq <= %(seq)s ORDER BY seq DESC LIMIT 1
    ) AS newest WHERE run_id = %(run)s ORDER BY newest.seq DESC LIMIT {KEPT_NAMES})
)
UNION ALL
{rows.SELECT} WHERE run_id = %(run)s AND kind = ANY(%(of_steps)s)
  AND seq BETWEEN (SELECT seq FROM cut) AND %(seq)s
ORDER BY seq
"""


def state(run: Run, seq: int | None = None, view: View | None = None) -> bytes:
    """Returns JSON {epoch, seq, events}: the compacted log up to `seq` (the head if None), as in
    `view` (a member's if None).

    Folding these events gives what folding the whole log would, as far as a page shows it: all
    events of the run, its steps and agents; trees and nodes of the last two steps; the newest 200
    each of log lines, samples and waits; the newest text, table and histogram of each name.
    """
    seq = run.head_seq if seq is None else min(seq, run.head_seq)
    values = {
        "run": run.pk,
        "seq": seq,
        "whole": list(_WHOLE),
        "tail": list(_TAIL),
        "of_steps": list(_OF_STEPS),
    }
    return _encoded(run, seq, _STATE, values, view)


def tree(run: Run, tree: int, seq: int | None = None, view: View | None = None) -> bytes | None:
    """Returns JSON {epoch, seq, events} of one tree of any age, up to `seq`; None if the run has no
    such tree."""
    seq = run.head_seq if seq is None else min(seq, run.head_seq)
    if not Event.objects.filter(run=run, tree=tree, kind="tree.open", seq__lte=seq).exists():
        return None
    values = {"run": run.pk, "seq": seq, "tree": tree, "bulk": list(_BULK)}
    return _encoded(run, seq, _TREE, values, view)


def step(run: Run, step: int, seq: int | None = None, view: View | None = None) -> bytes:
    """Returns JSON {epoch, seq, events} of the trees of one step of any age, up to `seq`."""
    seq = run.head_seq if seq is None else min(seq, run.head_seq)
    values = {"run": run.pk, "seq": seq, "bulk": list(_BULK)}
    values |= {"step": Jsonb(step), "after": Jsonb(step + 2)}
    return _encoded(run, seq, _STEP, values, view)


def logged(
    run: Run, kind: str, name: str, before: int | None, limit: int
) -> dict[str, list[dict[str, Any]] | int | None]:
    """Returns {values: [{seq, time, step, value}], next}: the values of `kind` that were logged
    under `name` before a seq, newest first."""
    before = 2**62 if before is None else before
    values = {"run": run.pk, "kind": kind, "name": name, "before": before, "limit": limit + 1}
    with connection.cursor() as cursor:
        cursor.execute(_LOGGED, values)
        entries = [
            {"seq": seq, "time": time, "step": json.loads(step), "value": json.loads(value)}
            for seq, time, step, value in cursor.fetchall()
        ]
    return {
        "values": entries[:limit],
        "next": entries[limit - 1]["seq"] if len(entries) > limit else None,
    }


def _encoded(run: Run, seq: int, query: str, values: dict[str, Any], view: View | None) -> bytes:
    encode = (view or View.of_all(run.pk)).encode
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        events = b",".join(filter(None, map(encode, cursor.fetchall())))
    return b'{"epoch":"%s","seq":%d,"events":[%s]}' % (str(run.epoch).encode(), seq, events)


def folded(run: Run, seq: int | None = None) -> dict[str, Any]:
    """Returns state(seq), the fold of the log up to `seq` (`webapp.telemetry.fold`)."""
    compacted = json.loads(state(run, seq))
    return {
        "epoch": compacted["epoch"],
        **fold(compacted["events"]).as_json(),
        "seq": compacted["seq"],
    }


def first_solved(run: Run, view: View | None = None) -> dict[str, int] | None:
    """Returns {seq, tree, node} of the first node in view that passed; None if there is none."""
    closed = Event.objects.filter(run=run, kind="node.close", payload__score=1.0)
    if view and view.until is not None:
        closed = closed.filter(seq__lte=view.until)
    if view and view.tree is not None:
        closed = closed.filter(tree=view.tree)
    return closed.order_by("seq").values("seq", "tree", "node").first()


async def lines(
    run: Run,
    after: int,
    until: int | None = None,
    topics: Iterable[str] = ("*",),
    view: View | None = None,
) -> AsyncIterator[bytes]:
    """Yields NDJSON: the events after `after` up to `until` that are stored now, one per line.

    Holds no database connection while the reader consumes a block.
    """
    read, selected = database_sync_to_async(_rows_after), frozenset(topics)
    view = view or View.of_all(run.pk)
    last = view.clamp(run.head_seq if until is None else min(until, run.head_seq))
    while after < last and (batch := await read(run, after)):
        shown = (
            view.encode(row)
            for row in batch
            if row[0] <= last and rows.topics_match(selected, row[2])
        )
        yield b"".join(line + b"\n" for line in shown if line)
        after = batch[-1][0]


def _rows_after(run: Run, after: int) -> list[rows.Row]:
    with connection.cursor() as cursor:
        cursor.execute(rows.AFTER, [run.pk, after, PAGE])
        return cursor.fetchall()


def node(run: Run, tree: int, node: int, view: View | None = None) -> dict[str, Any] | None:
    """Returns the stored payloads of one node by kind, with its tree's and its parent's, as in
    `view` (a member's if None).

    None if there is no such node.
    """
    view = view or View.of_all(run.pk)
    payloads = _payloads(run, tree, node, view)
    if "node.open" not in payloads:
        return None
    parent = payloads["node.open"]["parent"]
    opened = Event.objects.filter(run=run, tree=tree, kind="tree.open").first()
    return {
        "tree": tree,
        "node": node,
        "open": payloads["node.open"],
        "close": payloads.get("node.close"),
        "credit": payloads.get("node.credit"),
        "text": payloads.get("node.text"),
        "learned": _token_stats(run, tree, node, view.until),
        "problem": view.payload("tree.open", opened.payload) if opened else None,
        "parent": _payloads(run, tree, parent, view).get("node.close"),
    }


def _token_stats(run: Run, tree: int, node: int, until: int | None) -> dict[str, Any] | None:
    """Returns {agent, step, version, entropy, ratio} by token, of the update that used the node."""
    updates = Event.objects.filter(run=run, tree=tree, kind="tree.learned").order_by("-seq")
    for event in updates if until is None else updates.filter(seq__lte=until):
        for one in event.payload["nodes"]:
            if one["node"] == node:
                about = {name: event.payload[name] for name in ("agent", "step", "version")}
                return {**about, "entropy": one["entropy"], "ratio": one["ratio"]}
    return None


def _payloads(run: Run, tree: int, node: int, view: View) -> dict[str, dict[str, Any]]:
    """Returns what is visible of a node's events, by kind."""
    events = Event.objects.filter(run=run, tree=tree, node=node).order_by("seq")
    if view.until is not None:
        events = events.filter(seq__lte=view.until)
    payloads = {event.kind: view.payload(event.kind, event.payload) for event in events}
    return {kind: payload for kind, payload in payloads.items() if payload is not None}
