"""Queries of metrics: a range of x in buckets as wide as a pixel, or the points themselves.

Invariant: every point of the range is in exactly one bucket; none is left out. Where 32, 1,024 or
32,768 consecutive points span at most the width of one bucket, their sums are read instead, and
count in the bucket in which they start. So the rows read grow with the number of buckets, not of
points. As of an earlier event the points are those recorded until then
(`telemetry.series.as_of`), including those that the run has discarded since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from django.db import connection

from webapp.experiments.models import Run
from webapp.telemetry.models import Clock, Metric
from webapp.telemetry.series.as_of import stored_until
from webapp.telemetry.series.blocks import LEVELS
from webapp.telemetry.series.buffer import COLUMNS
from webapp.telemetry.series.metrics import catch_up
from webapp.telemetry.series.packing import FANOUT


class Axis(StrEnum):
    """The x axis of a metric."""

    STEP = "step"
    TIME = "time"
    """Seconds since the run's first event."""
    TOKENS = "tokens"
    NODES = "nodes"


POINT_FIELDS = ("position", *COLUMNS)
"""Columns of points that can be requested."""


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Range:
    """Requested range: x from `first` to `last`, both included; None is the metric's own end."""

    axis: Axis = Axis.STEP
    first: float | None = None
    last: float | None = None
    points: int = 600
    scale: Scale = Scale.LINEAR
    until: int | None = None
    """Seq of the last event that counts; None means the newest."""


def metrics_of(run: Run) -> Any:
    """Returns the run's metrics in the order in which they were first recorded."""
    if run.head_seq and not Clock.objects.filter(pk=run.pk).exists():
        catch_up(run.pk)
    return Metric.objects.filter(run=run)


def buckets(metric: Metric, requested: Range) -> dict[str, Any]:
    """Returns {name, x, from, to, points, buckets: {at, from, to, min, max, mean, count},
    gaps: {at, x}}: `points` counts those of the range, `at` is a bucket's index among the requested
    ones; empty buckets are left out. `gaps` are buckets without a point in which an event reported
    the number without a value.
    """
    base = _query_values(metric, requested.until)
    first = _end(base, requested.axis, "min") if requested.first is None else requested.first
    last = _end(base, requested.axis, "max") if requested.last is None else requested.last
    scaled = _log if requested.scale is Scale.LOG else float
    width = (scaled(last) - scaled(first)) / requested.points or 1.0
    values = {
        **base,
        "first": float(first),
        "last": float(last),
        "origin": scaled(first),
        "width": width,
        "top": requested.points - 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUERIES[requested.axis, requested.scale], values)
        rows = cursor.fetchall()
    filled, gaps = ([row for row in rows if bool(row[-1]) is full] for full in (True, False))
    columns = list(zip(*filled, strict=True)) or [()] * len(_COLUMNS)
    by_name = dict(zip(_COLUMNS, columns, strict=True))
    return {
        "name": metric.name,
        "x": requested.axis,
        "from": first,
        "to": last,
        "points": sum(by_name["count"]),
        "buckets": by_name,
        "gaps": {"at": [at for at, *_ in gaps], "x": [x for _, x, *_ in gaps]},
    }


def points(metric: Metric, after: int | None, limit: int, names: Sequence[str]) -> bytes:
    """Returns {points: {name: column}, next} as JSON: these columns of at most `limit` points after
    a position, and the position to continue after, null at the end.

    Postgres writes the columns as text: no object is made per number.
    """
    first = 0 if after is None else after + 1
    end = min(first + limit, metric.points)
    columns = [""] * len(names)
    if first < end:
        with connection.cursor() as cursor:
            cursor.execute(_columns(tuple(names)), {
                "metric": metric.pk, "from": first, "to": end, "size": FANOUT,
            })  # fmt: skip
            columns = cursor.fetchone()
    body = ",".join(f'"{name}":[{column}]' for name, column in zip(names, columns, strict=True))
    following = end - 1 if end < metric.points else "null"
    return f'{{"points":{{{body}}},"next":{following}}}'.encode()


@cache
def _columns(names: tuple[str, ...]) -> str:
    """Returns the query of each column as comma-separated numbers, positions from..to - 1."""
    part = "[greatest(%(from)s - index * %(size)s, 0) + 1 : %(to)s - index * %(size)s]"
    position = """array_to_string(ARRAY(SELECT generate_series(
        greatest(%(from)s, index * %(size)s),
        least(%(to)s, (index + 1) * %(size)s) - 1)), ',')"""
    expressions = [
        position if name == "position" else f"array_to_string({name}{part}, ',')" for name in names
    ]
    return f"""
        SELECT {", ".join(f"string_agg({column}, ',' ORDER BY index)" for column in expressions)}
        FROM telemetry_block WHERE metric_id = %(metric)s
          AND index >= %(from)s / %(size)s AND index <= (%(to)s - 1) / %(size)s"""


def _query_values(metric: Metric, until: int | None) -> dict[str, Any]:
    """Returns the query values to read the points recorded up to `until`: `stored` is the number of
    those that are stored, `tailN` the chunks of level N that they fill."""
    stored = metric.points if until is None else stored_until(metric, until)
    tails = {f"tail{level}": stored // FANOUT**level for level in range(1, LEVELS + 1)}
    of = {"metric": metric.pk or 0, "run": metric.run_id, "name": metric.name}
    return {**of, **tails, "stored": stored, "until": until or 0}


def _end(base: dict[str, Any], axis: Axis, function: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_END[axis, function], base)
        return cursor.fetchone()[0] or 0


def _log(x: float) -> float:
    return math.log(max(x, 1.0))


_COLUMNS = ("at", "from", "to", "min", "max", "mean", "count")


def _query(axis: Axis, scale: Scale) -> str:
    """Returns the query of buckets, levels from coarse to fine: what does not fit into a bucket,
    extends beyond the range, or is in no chunk yet, is read one level deeper."""
    levels = range(LEVELS, 0, -1)
    withs = [_level(axis, scale, level) for level in levels]
    parts = [
        f"SELECT a, b, least, most, total, {FANOUT**level} AS count FROM level{level} WHERE fits"
        for level in levels
    ]
    parts += _points(axis)
    # A gap counts as no point.
    parts.append(
        f"""SELECT {axis}, {axis}, NULL, NULL, NULL, 0 FROM telemetry_gap
        WHERE metric_id = %(metric)s AND position <= %(stored)s
          AND (%(until)s = 0 OR seq <= %(until)s) AND {axis} >= %(first)s AND {axis} <= %(last)s"""
    )
    at = _scaled("a", scale)
    at = f"least(%(top)s, greatest(0, floor(({at} - %(origin)s) / %(width)s)))::int"
    start, end = (
        f"coalesce({one} FILTER (WHERE count > 0), {one})" for one in ("min(a)", "max(b)")
    )
    return f"""
        WITH {", ".join(withs)}
        SELECT {at}, {start}, {end}, min(least), max(most), sum(total) / nullif(sum(count), 0),
               sum(count)::bigint
        FROM ({" UNION ALL ".join(parts)}) AS part GROUP BY 1 ORDER BY 1"""


def _scaled(x: str, scale: Scale) -> str:
    return f"ln(greatest({x}, 1.0))" if scale is Scale.LOG else f"{x}::float8"


def _level(axis: Axis, scale: Scale, level: int) -> str:
    """Returns the expression of the chunks of one level that a coarser one does not cover: (a, b)
    is the range of x of each, `fits` says whether it is in the range and in one bucket."""
    columns = f"index, least, most, total, {axis}_from AS a, {axis}_to AS b"
    width = f"{_scaled('b', scale)} - {_scaled('a', scale)}"
    fits = f"a >= %(first)s AND b <= %(last)s AND {width} <= %(width)s"
    overlaps = f"{axis}_to >= %(first)s AND {axis}_from <= %(last)s"
    chunks = f"FROM telemetry_chunk WHERE metric_id = %(metric)s AND level = {level}"
    tail = 0 if level == LEVELS else f"%(tail{level + 1})s * {FANOUT}"
    query = f"SELECT {columns} {chunks} AND {overlaps} AND index >= {tail}"
    query += f" AND index < %(tail{level})s"
    if level < LEVELS:
        query += f""" UNION ALL SELECT deeper.* FROM level{level + 1} AS up, LATERAL (
            SELECT {columns} {chunks} AND {overlaps}
            AND index >= up.index * {FANOUT} AND index < (up.index + 1) * {FANOUT} OFFSET 0
        ) AS deeper WHERE NOT up.fits"""
    return f"level{level} AS MATERIALIZED (SELECT *, {fits} AS fits FROM ({query}) AS q)"


def _points(axis: Axis) -> list[str]:
    """Returns the queries of single points: in no chunk yet, in a chunk that does not fit into a
    bucket, or discarded since."""
    inside = "x >= %(first)s AND x <= %(last)s"
    points = f"""SELECT x AS a, x AS b, y AS least, y AS most, y AS total, 1 AS count
        FROM telemetry_block AS block,
             unnest(block.{axis}, block.value) WITH ORDINALITY AS point (x, y, position)
        WHERE metric_id = %(metric)s AND {inside}"""
    return [
        f"{points} AND index = %(tail1)s AND index * {FANOUT} + position <= %(stored)s",
        f"""SELECT deeper.* FROM level1 AS up, LATERAL (
            {points} AND block.index = up.index OFFSET 0
        ) AS deeper WHERE NOT up.fits""",
        f"SELECT x, x, y, y, y, 1 FROM ({_taken(axis)}) AS taken WHERE {inside}",
    ]


def _taken(axis: Axis) -> str:
    """Returns the query of the points recorded up to `until` that the run has discarded since."""
    return f"""SELECT x, y FROM telemetry_takenback AS taken,
            unnest(taken.{axis}, taken.value, taken.seq) AS point (x, y, recorded)
        WHERE %(until)s > 0 AND run_id = %(run)s AND name = %(name)s
          AND taken_at > %(until)s AND recorded <= %(until)s"""


def _end_query(axis: Axis, function: str) -> str:
    """Returns the query of the smallest or largest x, from the coarsest chunks and the points after
    them."""
    column = f"{axis}_from" if function == "min" else f"{axis}_to"
    parts = [
        f"""SELECT {function}({column}) AS x FROM telemetry_chunk WHERE metric_id = %(metric)s
        AND level = {level} AND index >= {_after(level)} AND index < %(tail{level})s"""
        for level in range(1, LEVELS + 1)
    ]
    parts.append(
        f"""SELECT {function}(x) FROM telemetry_block AS block,
            unnest(block.{axis}) WITH ORDINALITY AS point (x, position)
        WHERE metric_id = %(metric)s AND index = %(tail1)s
          AND index * {FANOUT} + position <= %(stored)s"""
    )
    parts.append(f"SELECT {function}(x) FROM ({_taken(axis)}) AS taken")
    return f"SELECT {function}(x)::float8 FROM ({' UNION ALL '.join(parts)}) AS ends"


def _after(level: int) -> str:
    return "0" if level == LEVELS else f"%(tail{level + 1})s * {FANOUT}"


_QUERIES = {(axis, scale): _query(axis, scale) for axis in Axis for scale in Scale}
_END = {(axis, end): _end_query(axis, end) for axis in Axis for end in ("min", "max")}
