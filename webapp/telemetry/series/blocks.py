"""Storage of points in the order in which they are recorded: 32 per row, with their sums.

Invariants: callers hold the run's row lock. A full block never changes, and has its chunk of level
1; the last block of a metric may have fewer points, and is rewritten when more arrive. So the cost
of a batch grows with its rows of 32, not with its numbers, and a live run rewrites one row per
metric that it reports.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from django.db import connection

from webapp.telemetry.models import Gap, Metric
from webapp.telemetry.series.buffer import COLUMNS, PointBuffer, Table
from webapp.telemetry.series.packing import AXES, FANOUT, Lot, block_rows, chunk_rows, copy_in

LEVELS = 3
"""Levels of chunks: sums of 32, 1,024 and 32,768 points."""

Counted = tuple[int, int]
"""Id of a metric and number of its points."""

_SPANS = ", ".join(f"{axis}_from, {axis}_to" for axis in AXES)
_COPY_BLOCKS = (
    f"COPY telemetry_block (metric_id, index, {', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"
)
_COPY_CHUNKS = (
    f"COPY telemetry_chunk (metric_id, level, index, least, most, total, {_SPANS})"
    " FROM STDIN (FORMAT BINARY)"
)
_NAMED = """
INSERT INTO telemetry_metric (run_id, name, points, value, step, time, tokens, nodes)
SELECT %s, name, 0, 0, 0, 0, 0, 0 FROM unnest(%s::text[]) AS name
"""
_TAKEN = f"""
DELETE FROM telemetry_block AS block USING unnest(%s::bigint[], %s::bigint[]) AS open (id, index)
WHERE block.metric_id = open.id AND block.index = open.index
RETURNING block.metric_id, {", ".join(f"block.{name}" for name in COLUMNS)}
"""
_NEWEST = """
UPDATE telemetry_metric AS metric
SET points = newest.points, step = newest.step, time = newest.time, tokens = newest.tokens,
    nodes = newest.nodes, value = newest.value
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::bigint[],
            %s::float8[]) AS newest (id, points, step, time, tokens, nodes, value)
WHERE metric.id = newest.id
"""
_OF_CHUNKS = ", ".join(f"min({axis}_from), max({axis}_to)" for axis in AXES)
_FROM_CHUNKS = f"""
INSERT INTO telemetry_chunk (metric_id, level, index, least, most, total, {_SPANS})
SELECT whole.id, %(level)s, part.*
FROM unnest(%(ids)s::bigint[], %(from)s::bigint[], %(to)s::bigint[])
    AS whole (id, first, after), LATERAL (
    SELECT index / {FANOUT} AS up, min(least), max(most), sum(total), {_OF_CHUNKS}
    FROM telemetry_chunk WHERE metric_id = whole.id AND level = %(level)s - 1
      AND index >= whole.first * {FANOUT} AND index < whole.after * {FANOUT}
    GROUP BY 1
) AS part
"""
_GAPS_CUT = "DELETE FROM telemetry_gap WHERE metric_id = %s AND position >= %s"
_SHORTENED = f"""
UPDATE telemetry_block SET {", ".join(f"{name} = {name}[1:%(left)s]" for name in COLUMNS)}
WHERE metric_id = %(metric)s AND index = %(index)s
"""
_AS_LAST = f"""
UPDATE telemetry_metric AS metric
SET points = %(kept)s, {", ".join(f"{name} = block.{name}[%(position)s]" for name in COLUMNS[1:])}
FROM telemetry_block AS block
WHERE metric.id = %(metric)s AND block.metric_id = metric.id AND block.index = %(last)s
"""


def store(run_id: uuid.UUID, buffer: PointBuffer) -> None:
    """Appends these numbers to the metrics of the run, creates new metrics, and notes gaps."""
    tables = buffer.tables()
    counts = _counts(run_id, [name for table in tables for name in table.names])
    if buffer.gaps:
        _store_gaps(run_id, buffer, tables, counts)
    with connection.cursor() as cursor:
        opened = _take_open(cursor, counts.values())
        lots = [lot for table in tables for lot in _lots(table, counts, opened)]
        copy_in(cursor, _COPY_BLOCKS, (rows for lot in lots for rows in block_rows(lot)))
        copy_in(cursor, _COPY_CHUNKS, (chunk_rows(lot) for lot in lots))
        newest = [row for lot in lots for row in _newest(lot)]
        if newest:
            cursor.execute(_NEWEST, [list(column) for column in zip(*newest, strict=True)])
        after = {metric: points for metric, points, *_ in newest}
        _sum_up(cursor, [(pk, before, after[pk]) for pk, before in counts.values()])


def cut(cursor: Any, metric: int, kept: int) -> None:
    """Deletes all points of the metric except the first `kept`; if `kept` is 0, the metric too."""
    index, left = divmod(kept, FANOUT)
    cursor.execute(_GAPS_CUT, [metric, kept])
    values = {"metric": metric, "kept": kept, "index": index, "left": left}
    for level in range(1, LEVELS + 1):
        cursor.execute(
            "DELETE FROM telemetry_chunk WHERE metric_id = %s AND level = %s AND index >= %s",
            [metric, level, kept // FANOUT**level],
        )
    first_lost = index + (left > 0)
    cursor.execute(
        "DELETE FROM telemetry_block WHERE metric_id = %s AND index >= %s", [metric, first_lost]
    )
    if not kept:
        cursor.execute("DELETE FROM telemetry_metric WHERE id = %s", [metric])
        return
    if left:
        cursor.execute(_SHORTENED, values)
    last, position = divmod(kept - 1, FANOUT)
    cursor.execute(_AS_LAST, {**values, "last": last, "position": position + 1})


def _store_gaps(
    run_id: uuid.UUID, buffer: PointBuffer, tables: Sequence[Table], counts: dict[str, Counted]
) -> None:
    """Notes where a number had no value, once between two points. Before the first point of a
    metric there is no gap."""
    seqs = {name: table.moments[0] for table in tables for name in table.names}
    known = counts | _stored(run_id, buffer.gaps.keys() - counts.keys())
    gaps = {}
    for name, moments in buffer.gaps.items():
        if name not in known:
            continue
        metric, before = known[name]
        for moment in moments:
            after = int(np.searchsorted(seqs[name], moment[0])) if name in seqs else 0
            if position := before + after:
                gaps.setdefault((metric, position), moment)
    Gap.objects.bulk_create(
        [
            Gap(metric_id=metric, position=position, **dict(zip(COLUMNS, moment, strict=False)))
            for (metric, position), moment in gaps.items()
        ],
        ignore_conflicts=True,
    )


def _stored(run_id: uuid.UUID, names: Iterable[str]) -> dict[str, Counted]:
    rows = Metric.objects.filter(run=run_id, name__in=names)
    return {name: (pk, points) for name, pk, points in rows.values_list("name", "pk", "points")}


def _counts(run_id: uuid.UUID, names: Iterable[str]) -> dict[str, Counted]:
    """Returns (id, points) of each of these metrics, creating new ones."""
    names = list(names)
    counts = _stored(run_id, names)
    if missing := sorted(set(names) - counts.keys()):
        with connection.cursor() as cursor:
            cursor.execute(_NAMED, [run_id, missing])
        counts = _stored(run_id, names)
    return counts


def _take_open(cursor: Any, counts: Iterable[Counted]) -> dict[int, list[Any]]:
    """Deletes the blocks that are not full and returns their columns, to be rewritten."""
    partial = [(metric, points // FANOUT) for metric, points in counts if points % FANOUT]
    if not partial:
        return {}
    cursor.execute(_TAKEN, [list(column) for column in zip(*partial, strict=True)])
    return {metric: columns for metric, *columns in cursor.fetchall()}


def _lots(table: Table, counts: dict[str, Counted], opened: dict[int, list[Any]]) -> Iterator[Lot]:
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, name in enumerate(table.names):
        block = opened.get(counts[name][0])
        alike[tuple(block[0]) if block else ()].append(index)
    for seqs, indices in alike.items():
        metrics, before = zip(*(counts[table.names[index]] for index in indices), strict=True)
        moments, values = table.moments, table.values_MP[indices]
        if seqs:
            *old_moments, _ = opened[metrics[0]]
            moments = [
                np.concatenate([old, new]) for old, new in zip(old_moments, moments, strict=True)
            ]
            values = np.concatenate([[opened[one][-1] for one in metrics], values], axis=1)
        yield Lot(np.array(metrics), np.array(before) // FANOUT, moments, values)


def _newest(lot: Lot) -> Iterator[tuple[Any, ...]]:
    """Yields (metric, points, step, time, tokens, nodes, value) of each metric's newest point."""
    points = lot.index_M * FANOUT + lot.values_MP.shape[1]
    moment = [one[-1].item() for one in lot.moments[1:]]
    last = lot.values_MP[:, -1]
    for metric, number, value in zip(*(one.tolist() for one in (lot.metrics_M, points, last)),
                                     strict=True):  # fmt: skip
        yield (metric, number, *moment, value)


def _sum_up(cursor: Any, counts: Sequence[tuple[int, int, int]]) -> None:
    """Creates the chunks above level 1 that became full; `counts` is (metric, points before,
    points after)."""
    for level in range(2, LEVELS + 1):
        size = FANOUT**level
        full = [
            (metric, before // size, after // size)
            for metric, before, after in counts
            if before // size < after // size
        ]
        if not full:
            return
        ids, firsts, ends = (list(column) for column in zip(*full, strict=True))
        cursor.execute(_FROM_CHUNKS, {"level": level, "ids": ids, "from": firsts, "to": ends})
