"""Parquet files, and Arrow files as the `datasets` library writes them, row by row.

Invariant: only the columns that were asked for are read, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from engine.problems.errors import DatasetError, DatasetFault

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
_BATCH_ROWS = 32


def is_columnar(start: bytes) -> bool:
    """Whether a file that starts so is one of ours."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def rows_of(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[int, Any]]:
    """(position from 1, row); of the fields only `wanted`, if that is given.

    Raises:
        DatasetError: the file cannot be read.
    """
    import pyarrow  # only who has such a file pays for it

    number = 0
    try:
        for batch in _batches(path, wanted):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        remedy = f"cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}"
        raise DatasetError([DatasetFault(str(path), number, "file", str(path), remedy)]) from None


def _batches(path: Path, wanted: Collection[str] | None) -> Iterator[Any]:
    import pyarrow
    from pyarrow import parquet

    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(PARQUET):
            table = parquet.ParquetFile(file)
            names = [n for n in table.schema_arrow.names if wanted is None or n in wanted]
            yield from table.iter_batches(_BATCH_ROWS, columns=names)
            return
        if start.startswith(ARROW_FILE):
            reader = pyarrow.ipc.open_file(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            batches = iter(pyarrow.ipc.open_stream(file))
        for batch in batches:
            names = [n for n in batch.schema.names if wanted is None or n in wanted]
            chosen = batch.select(names)
            for position in range(0, chosen.num_rows, _BATCH_ROWS):
                yield chosen.slice(position, _BATCH_ROWS)
