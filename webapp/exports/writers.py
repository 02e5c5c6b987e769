"""Writers of tables as files: CSV, JSON Lines and Parquet, row by row.

Invariant: numbers are exact in each of them (the shortest text that reads back to the same double;
64 bits in Parquet). A text cell of CSV never starts a formula (`webapp.csv_cells`); the other two
formats store every text as it is.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from webapp.csv_cells import safe_cell
from webapp.exports.columns import Column, Kind, Row
from webapp.exports.models import Format

ROWS_OF_GROUP = 20_000
"""Rows of a Parquet row group, which are buffered in memory."""


class Writer(Protocol):
    def add(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


def writer(file: Format, path: Path, columns: Sequence[Column]) -> Writer:
    """Returns a writer of a table of these columns to a new file."""
    return _WRITERS[file](path, columns)


class _Csv:
    def __init__(self, path: Path, columns: Sequence[Column]):
        self._file = path.open("x", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._cells = [_CELLS.get(column.kind, _plain) for column in columns]
        self._writer.writerow([column.name for column in columns])

    def add(self, rows: Sequence[Row]) -> None:
        self._writer.writerows(
            [
                None if value is None else cell(value)
                for cell, value in zip(self._cells, row, strict=True)
            ]
            for row in rows
        )

    def close(self) -> None:
        self._file.close()


class _JsonLines:
    def __init__(self, path: Path, columns: Sequence[Column]):
        self._file = path.open("xb")
        self._names = [column.name for column in columns]
        self._encode = msgspec.json.Encoder(enc_hook=str).encode

    def add(self, rows: Sequence[Row]) -> None:
        names, encode = self._names, self._encode
        lines = [encode(dict(zip(names, row, strict=True))) for row in rows]
        self._file.write(b"\n".join([*lines, b""]))

    def close(self) -> None:
        self._file.close()


class _Parquet:
    def __init__(self, path: Path, columns: Sequence[Column]):
        # Only a worker writes files; a page need not load the library.
        import pyarrow
        from pyarrow import parquet

        self._arrow = pyarrow
        self._kinds = [_arrow_types(pyarrow)[column.kind] for column in columns]
        names = [column.name for column in columns]
        self._schema = pyarrow.schema(list(zip(names, self._kinds, strict=True)))
        self._as = [float if column.kind is Kind.NUMBER else None for column in columns]
        self._rows: list[Row] = []
        self._sink = pyarrow.OSFile(str(path), "wb")
        self._file = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")

    def add(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= ROWS_OF_GROUP:
            self._flush()

    def close(self) -> None:
        try:
            if self._rows:
                self._flush()
            self._file.close()
        finally:  # on a full disk the writer stays open, and so would the file's space
            self._sink.close()

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [
            self._arrow.array(
                [v if v is None else as_kind(v) for v in column] if as_kind else column, kind
            )
            for column, kind, as_kind in zip(columns, self._kinds, self._as, strict=True)
        ]
        self._file.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


def _arrow_types(pyarrow: Any) -> dict[Kind, Any]:
    return {
        Kind.TEXT: pyarrow.string(),
        Kind.INTEGER: pyarrow.int64(),
        Kind.NUMBER: pyarrow.float64(),
        Kind.FLAG: pyarrow.bool_(),
        Kind.MOMENT: pyarrow.timestamp("us", tz="UTC"),
    }


def _plain(value: Any) -> Any:
    return value


def _flag(value: bool) -> str:
    return "true" if value else "false"


_CELLS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: safe_cell,
    Kind.FLAG: _flag,
    Kind.MOMENT: datetime.isoformat,
}
_WRITERS: dict[Format, Callable[[Path, Sequence[Column]], Writer]] = {
    Format.CSV: _Csv,
    Format.JSONL: _JsonLines,
    Format.PARQUET: _Parquet,
}
