"""Rows of blocks and chunks, packed for COPY as Postgres describes its binary format.

All rows of metrics that the same events told are packed at once, without an object for each number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from webapp.telemetry.told import COLUMNS, KINDS, Array

FANOUT = 32
"""Points of a block, and chunks of a level in one of the next."""

_OF_AXES = (1, 2, 3, 4)
AXES = tuple(COLUMNS[at] for at in _OF_AXES)
"""What a chunk tells the span of."""
_OIDS = {"i8": 20, "f8": 701}
_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = struct.pack(">h", -1)


@dataclass(frozen=True)
class Lot:
    """Numbers of metrics whose last blocks hold what the same events told, these blocks with
    them. Shapes as in `Table`."""

    metrics_M: Array
    index_M: Array
    """Of the block that the first point begins."""
    moments: list[Array]
    values_MP: Array


def block_rows(lot: Lot) -> Iterator[bytes]:
    """The full blocks, then those that are not."""
    points = lot.values_MP.shape[1]
    full, left = divmod(points, FANOUT)
    for first, blocks, length in ((0, full, FANOUT), (full, 1, left)):
        if blocks and length:
            span = slice(first * FANOUT, first * FANOUT + blocks * length)
            rows = np.full((len(lot.metrics_M), blocks), _block_row(length))
            rows["metric"] = lot.metrics_M[:, None]
            rows["index"] = lot.index_M[:, None] + np.arange(first, first + blocks)
            for name, column in zip(COLUMNS, (*lot.moments, lot.values_MP), strict=True):
                items = column[..., span]
                rows[name]["items"]["value"] = items.reshape(*items.shape[:-1], blocks, length)
            yield rows.tobytes()


def chunk_rows(lot: Lot) -> bytes:
    """Those of the full blocks."""
    full = lot.values_MP.shape[1] // FANOUT
    values, *axes = (
        column[..., : full * FANOUT].reshape(*column.shape[:-1], full, FANOUT)
        for column in (lot.values_MP, *(lot.moments[at] for at in _OF_AXES))
    )
    rows = np.full((len(lot.metrics_M), full), _chunk_row())
    rows["metric"], rows["level"] = lot.metrics_M[:, None], 1
    rows["index"] = lot.index_M[:, None] + np.arange(full)
    rows["least"], rows["most"], rows["total"] = values.min(-1), values.max(-1), values.sum(-1)
    for name, axis in zip(AXES, axes, strict=True):
        rows[f"{name}_from"], rows[f"{name}_to"] = axis.min(-1), axis.max(-1)
    return rows.tobytes()


@lru_cache(maxsize=FANOUT)
def _block_row(length: int) -> Array:
    """A row of blocks whose numbers are all 0. Arrays have one dimension, from 1 on."""
    head = ("bytes", "dimensions", "nulls", "type", "length", "first")
    arrays = [
        (name, [*((part, ">i4") for part in head), ("items", _value(kind), (length,))])
        for name, kind in zip(COLUMNS, KINDS, strict=True)
    ]
    row = _row([("metric", "i8"), ("index", "i8")], arrays)
    for name, kind in zip(COLUMNS, KINDS, strict=True):
        array = row[name]
        array["bytes"] = array.dtype.itemsize - 4
        array["dimensions"], array["type"] = 1, _OIDS[kind]
        array["length"], array["first"], array["items"]["bytes"] = length, 1, 8
    return row


@lru_cache(maxsize=1)
def _chunk_row() -> Array:
    """The same of chunks."""
    sums = [(name, "f8") for name in ("least", "most", "total")]
    spans = [(f"{AXES[n]}_{end}", KINDS[at]) for n, at in enumerate(_OF_AXES)
             for end in ("from", "to")]  # fmt: skip
    return _row([("metric", "i8"), ("level", "i2"), ("index", "i8"), *sums, *spans], [])


def _value(kind: str) -> np.dtype[Any]:
    """A number, after its length."""
    return np.dtype([("bytes", ">i4"), ("value", f">{kind}")])


def _row(plain: list[tuple[str, str]], arrays: list[tuple[str, Any]]) -> Array:
    """A row of such columns: how many they are, then each."""
    fields: list[tuple[str, Any]] = [("columns", ">i2")]
    for name, kind in plain:
        fields += ((f"{name}_bytes", ">i4"), (name, f">{kind}"))
    row = np.zeros((), dtype=[*fields, *arrays])
    row["columns"] = len(plain) + len(arrays)
    for name, kind in plain:
        row[f"{name}_bytes"] = int(kind[1:])
    return row


def copy_in(cursor: Any, query: str, rows: Iterable[bytes]) -> None:
    """Send packed rows by a COPY, if there are any."""
    lots = [lot for lot in rows if lot]
    if lots:
        with cursor.copy(query) as copy:
            for piece in (_BEGIN, *lots, _END):
                copy.write(piece)
