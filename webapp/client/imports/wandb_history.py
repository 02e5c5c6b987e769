"""Runs of W&B, from a history that `run.history().to_csv(FILE)` of its API exports.

Invariant: rows of the same step are kept in their order.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from webapp.client.imports.whole import Finished

_LONGEST_CELL = 64 * 2**20
"""Characters of a cell that is read: tables and completions are cells, and may be long."""
_OF_WANDB = ("_step", "_timestamp", "_runtime", "_wandb")


class BadHistory(ValueError):
    """Raised for a table that is no history of W&B; names line, field, value and remedy."""


def without_own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values without those that W&B adds itself."""
    return {name: value for name, value in values.items() if name not in _OF_WANDB}


def run_of_history(path: Path) -> Finished:
    """Returns the run of a CSV file with a column `_step`, and `_timestamp` if there is one.

    Raises:
        BadHistory: it is none, or a step or a time is none.
    """
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(_rows(path.name, csv.DictReader(file)))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadHistory(f"{path.name}: this is no CSV in UTF-8: {error}") from None
    finally:
        csv.field_size_limit(before)
    return Finished(path.stem, path.stem, "finished", rows)


def _rows(name: str, reader: csv.DictReader) -> Iterator[tuple[float, int, dict[str, Any]]]:
    if "_step" not in (reader.fieldnames or ()):
        columns = ", ".join(reader.fieldnames or ())[:200] or "no columns"
        raise BadHistory(
            f"{name}, line 1: it has {columns}; give a history with a column _step, as "
            "run.history().to_csv writes it"
        )
    for row in reader:
        place = f"{name}, line {reader.line_num}"
        if None in row or None in row.values():
            raise BadHistory(f"{place}: it has other columns than line 1")
        step = _number(place, "_step", row["_step"])
        at = _number(place, "_timestamp", row.get("_timestamp") or "0")
        if step < 0 or step != int(step):
            raise BadHistory(f"{place}: _step = {row['_step']!r}: give a whole number from 0")
        values = {key: _cell(text) for key, text in without_own(row).items() if key and text}
        yield at, int(step), values


def _number(place: str, field: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadHistory(f"{place}: {field} = {text!r}: give a number")
    return number


def _cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
