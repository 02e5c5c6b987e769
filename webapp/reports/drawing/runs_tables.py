"""A table of runs; its data are texts already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    text: str
    label: str
    number: bool


@dataclass(frozen=True)
class TableRow:
    id: str
    name: str
    cells: list[Cell]


@dataclass(frozen=True)
class TableDrawing:
    kind: str
    name: str
    columns: list[dict[str, Any]]
    rows: list[TableRow]
    left_out: int
    runs: list[dict[str, Any]]


def table_drawing(data: dict[str, Any]) -> TableDrawing:
    """Returns the drawing of the data of a table (`embeds.runs_tables`)."""
    rows = [
        TableRow(row["id"], row["name"], [
            Cell(text, column["label"], column["number"])
            for text, column in zip(row["cells"], data["columns"], strict=True)
        ])
        for row in data["rows"]
    ]  # fmt: skip
    return TableDrawing("runs", "Runs", data["columns"], rows, data["left_out"], data["runs"])
