"""Storing numbers in the order in which they are told: 32 to a row, with their sums.

Invariants: callers hold the run's row lock. A full block never changes, and has its chunk of level
1; the last block of a metric may have fewer points, and is written anew when more come. So what a
batch costs grows with its rows of 32, not with its numbers, and a live run rewrites one row for
each metric that it tells.

Rows are packed for COPY as Postgres describes its binary format, without an object for each number.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db import connection

from webapp.telemetry.models import Metric

FANOUT = 32
"""Points of a block, and chunks of a level in one of the next."""
LEVELS = 3

Moment = tuple[int, int, float, int, int]
"""Where the run stood: seq, step, time, tokens, nodes."""
Told = Mapping[str, Sequence[tuple[Moment, float]]]
"""By the name of a metric, the numbers that follow those which are stored."""
Columns = list[Sequence[Any]]
"""seq, step, time, tokens, nodes and value of some points in a row."""

COLUMNS = ("seq", "step", "time", "tokens", "nodes", "value")
_KINDS = ("q", "q", "d", "q", "q", "d")
_OF_AXES = (1, 2, 3, 4)
_OIDS = {"q": 20, "d": 701}
_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = struct.pack(">h", -1)
_BLOCK = struct.Struct(">hiqiq")
_CHUNK = struct.Struct(">hiqihiqididid" + "".join(f"i{_KINDS[at]}" * 2 for at in _OF_AXES))
_AXES = tuple(COLUMNS[at] for at in _OF_AXES)
_SPANS = ", ".join(f"{axis}_from, {axis}_to" for axis in _AXES)
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
SET points = told.points, step = told.step, time = told.time, tokens = told.tokens,
    nodes = told.nodes, value = told.value
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::bigint[],
            %s::float8[]) AS told (id, points, step, time, tokens, nodes, value)
WHERE metric.id = told.id
"""
_OF_CHUNKS = ", ".join(f"min({axis}_from), max({axis}_to)" for axis in _AXES)
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
_SHORTENED = f"""
UPDATE telemetry_block SET {", ".join(f"{name} = {name}[1:%(left)s]" for name in COLUMNS)}
WHERE metric_id = %(metric)s AND index = %(index)s
"""
_AS_LAST = f"""
UPDATE telemetry_metric AS metric
SET points = %(kept)s, {", ".join(f"{name} = block.{name}[%(place)s]" for name in COLUMNS[1:])}
FROM telemetry_block AS block
WHERE metric.id = %(metric)s AND block.metric_id = metric.id AND block.index = %(last)s
"""


def store(run_id: uuid.UUID, told: Told) -> None:
    """Add these numbers to the metrics of the run; those that are new are made."""
    counts, common = _counts(run_id, told.keys()), _Common()
    with connection.cursor() as cursor:
        opened = _take_open(cursor, counts.values())
        blocks, chunks, newest = [_BEGIN], [_BEGIN], []
        for name, points in told.items():
            metric, before = counts[name]
            columns = common.columns(points)
            newest.append((metric, before + len(points), *(one[-1] for one in columns[1:])))
            if metric in opened:
                columns = [[*old, *new] for old, new in zip(opened[metric], columns, strict=True)]
            _pack(metric, before // FANOUT, columns, common, blocks, chunks)
        _copy(cursor, _COPY_BLOCKS, blocks)
        _copy(cursor, _COPY_CHUNKS, chunks)
        cursor.execute(_NEWEST, [list(column) for column in zip(*newest, strict=True)])
        _sum_up(cursor, [(pk, n, n + len(told[name])) for name, (pk, n) in counts.items()])


def cut(cursor: Any, metric: int, kept: int) -> None:
    """Forget all points of the metric but the first `kept`; with none, the metric itself."""
    index, left = divmod(kept, FANOUT)
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
    last, place = divmod(kept - 1, FANOUT)
    cursor.execute(_AS_LAST, {**values, "last": last, "place": place + 1})


def _counts(run_id: uuid.UUID, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """(id, points) of each of these metrics; those that are new are made."""

    def known() -> dict[str, tuple[int, int]]:
        rows = Metric.objects.filter(run=run_id, name__in=names)
        return {name: (pk, points) for name, pk, points in rows.values_list("name", "pk", "points")}

    names = list(names)
    found = known()
    if missing := sorted(set(names) - found.keys()):
        with connection.cursor() as cursor:
            cursor.execute(_NAMED, [run_id, missing])
        found = known()
    return found


def _take_open(cursor: Any, counts: Iterable[tuple[int, int]]) -> dict[int, Columns]:
    """The columns of the blocks that are not full, which are taken out to be written anew."""
    wanted = [(metric, points // FANOUT) for metric, points in counts if points % FANOUT]
    if not wanted:
        return {}
    cursor.execute(_TAKEN, [list(column) for column in zip(*wanted, strict=True)])
    return {metric: columns for metric, *columns in cursor.fetchall()}


class _Common:
    """What numbers have in common that the same events told: made once, however many they are."""

    def __init__(self) -> None:
        self._columns: dict[tuple[int, ...], Columns] = {}
        self._packed: dict[tuple[int, ...], tuple[bytes, list[Any]]] = {}

    def columns(self, points: Sequence[tuple[Moment, float]]) -> Columns:
        moments, values = zip(*points, strict=True)
        seqs = tuple(moment[0] for moment in moments)
        if seqs not in self._columns:
            self._columns[seqs] = list(zip(*moments, strict=True))
        return [*self._columns[seqs], values]

    def packed(self, block: Columns) -> tuple[bytes, list[Any]]:
        """The arrays of a block but its values, and the spans of its chunk."""
        seqs = tuple(block[0])
        if seqs not in self._packed:
            arrays = b"".join(map(_array, _KINDS[:-1], block[:-1]))
            spans: list[Any] = []
            for at in _OF_AXES:
                spans += (8, min(block[at]), 8, max(block[at]))
            self._packed[seqs] = arrays, spans
        return self._packed[seqs]


def _pack(
    metric: int,
    index: int,
    columns: Columns,
    common: _Common,
    blocks: list[bytes],
    chunks: list[bytes],
) -> None:
    """Append the rows of these points, which begin with block `index`."""
    for first in range(0, len(columns[0]), FANOUT):
        part = [column[first : first + FANOUT] for column in columns]
        arrays, spans = common.packed(part)
        values = part[-1]
        blocks += (_BLOCK.pack(2 + len(COLUMNS), 8, metric, 8, index), arrays)
        blocks.append(_array(_KINDS[-1], values))
        if len(values) == FANOUT:
            chunks.append(_chunk(metric, index, values, spans))
        index += 1


def _array(kind: str, values: Sequence[Any]) -> bytes:
    """A value of an array's column: its length, one dimension from 1 on, each entry of 8 bytes."""
    items = [8] * (2 * len(values))
    items[1::2] = values
    packer = _packer(kind, len(values))
    return packer.pack(packer.size - 4, 1, 0, _OIDS[kind], len(values), 1, *items)


@lru_cache(maxsize=2 * FANOUT)
def _packer(kind: str, length: int) -> struct.Struct:
    return struct.Struct(">6i" + f"i{kind}" * length)


def _chunk(metric: int, index: int, values: Sequence[float], spans: list[Any]) -> bytes:
    sums = (8, min(values), 8, max(values), 8, sum(values))
    return _CHUNK.pack(6 + 2 * len(_OF_AXES), 8, metric, 2, 1, 8, index, *sums, *spans)


def _copy(cursor: Any, query: str, rows: list[bytes]) -> None:
    if len(rows) > 1:
        with cursor.copy(query) as copy:
            copy.write(b"".join([*rows, _END]))


def _sum_up(cursor: Any, counts: Sequence[tuple[int, int, int]]) -> None:
    """Make the chunks above level 1 that have become full; of (metric, points before, after)."""
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
