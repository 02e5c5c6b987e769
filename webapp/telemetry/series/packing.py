"""Packing of rows of blocks and chunks for COPY in Postgres's binary format.

Rows of metrics that the same events reported are packed many at once, without an object per number,
and piece by piece: Postgres stores one piece while the next is packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from webapp.telemetry.series.buffer import COLUMNS, KINDS, Array

FANOUT = 32
"""Points per block, and chunks of a level per chunk of the next."""

PIECE = 256 * 1024
"""Bytes of blocks packed at once, or those of one metric if they are more."""

_OF_AXES = (1, 2, 3, 4)
AXES = tuple(COLUMNS[at] for at in _OF_AXES)
"""Axes of which a chunk holds the span."""
_OIDS = {"i8": 20, "f8": 701}
_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = struct.pack(">h", -1)


@dataclass(frozen=True)
class Lot:
    """Numbers of metrics whose last blocks hold numbers of the same events, including these blocks.
    Shapes as in `Table`."""

    metrics_M: Array
    index_M: Array
    """Index of the block that the first point starts."""
    moments: list[Array]
    values_MP: Array


def block_rows(lot: Lot) -> Iterator[bytes | bytearray]:
    """Yields the full blocks, then the partial ones."""
    points = lot.values_MP.shape[1]
    full, left = divmod(points, FANOUT)
    for first, blocks, length in ((0, full, FANOUT), (full, 1, left)):
        if blocks and length:
            yield from _pieces(lot, first, blocks, length)


def _pieces(lot: Lot, first: int, blocks: int, length: int) -> Iterator[bytearray]:
    """Yields `blocks` blocks of `length` points of each metric, from its block `first` on."""
    span = slice(first * FANOUT, first * FANOUT + blocks * length)
    rows_B = np.full(blocks, _block_row(length))
    for name, moments in zip(COLUMNS[:-1], lot.moments, strict=True):
        rows_B[name]["items"]["value"] = moments[span].reshape(blocks, length)
    of_one = rows_B.tobytes()  # the rows of every metric, except metric, index and values
    at_once = max(1, PIECE // len(of_one))
    for start in range(0, len(lot.metrics_M), at_once):
        some = slice(start, start + at_once)
        metrics = lot.metrics_M[some, None]
        packed = bytearray(of_one * len(metrics))
        rows_MB = np.frombuffer(packed, rows_B.dtype).reshape(-1, blocks)
        rows_MB["metric"] = metrics
        rows_MB["index"] = lot.index_M[some, None] + np.arange(first, first + blocks)
        values = lot.values_MP[some, span].reshape(-1, blocks, length)
        rows_MB[COLUMNS[-1]]["items"]["value"] = values
        yield packed


def chunk_rows(lot: Lot) -> bytes:
    """Returns the rows of the level 1 chunks of the full blocks."""
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
    """Returns a block row whose numbers are all 0. Arrays have one dimension, indexed from 1."""
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
    """Returns a chunk row whose numbers are all 0."""
    sums = [(name, "f8") for name in ("least", "most", "total")]
    spans = [(f"{AXES[n]}_{end}", KINDS[at]) for n, at in enumerate(_OF_AXES)
             for end in ("from", "to")]  # fmt: skip
    return _row([("metric", "i8"), ("level", "i2"), ("index", "i8"), *sums, *spans], [])


def _value(kind: str) -> np.dtype[Any]:
    """Returns the type of a number, preceded by its length."""
    return np.dtype([("bytes", ">i4"), ("value", f">{kind}")])


def _row(plain: list[tuple[str, str]], arrays: list[tuple[str, Any]]) -> Array:
    """Returns a row of these columns: their number, then each."""
    fields: list[tuple[str, Any]] = [("columns", ">i2")]
    for name, kind in plain:
        fields += ((f"{name}_bytes", ">i4"), (name, f">{kind}"))
    row = np.zeros((), dtype=[*fields, *arrays])
    row["columns"] = len(plain) + len(arrays)
    for name, kind in plain:
        row[f"{name}_bytes"] = int(kind[1:])
    return row


def copy_in(cursor: Any, query: str, rows: Iterable[bytes | bytearray]) -> None:
    """Sends packed rows by COPY as they are packed, if there are any."""
    pieces = filter(None, rows)
    first = next(pieces, None)
    if first is not None:
        with cursor.copy(query) as copy:
            for piece in chain((_BEGIN, first), pieces, (_END,)):
                copy.write(piece)
