"""Blocks of a report that embed figures of runs, parsed. Pure.

A block is fenced; after the fence stand `grove` and its kind, below it one `name: value` per line:

    ```grove chart
    run: 5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77
    series: reward
    frozen: 2026-11-26
    ```

Invariant: what cannot be used is refused by the first line that is wrong, with its value and the
remedy (`BlockError`); nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from webapp.experiments.runs_list.listing import COLUMNS, MOST_METRICS
from webapp.markdown import Block
from webapp.telemetry.series.reads import Axis

WORD = "grove"
MOST_RUNS = 8
MOST_SERIES = 8
LONGEST_VALUE = 200
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_RUN = re.compile(rf"(?:\S*/runs/)?({_UUID})(?:[/?#]\S*)?")
_TREE = re.compile(r"[0-9]{1,18}")


class Kind(StrEnum):
    CHART = "chart"
    TREE = "tree"
    RUNS = "runs"


class BlockError(Exception):
    """Raised for a block, or a value in it, that cannot be used."""

    def __init__(self, line: int, name: str, value: str, remedy: str):
        super().__init__(f"line {line}: {name} {value!r}: {remedy}")
        self.line, self.name, self.value, self.remedy = line, name, value, remedy

    def to_dict(self) -> dict[str, Any]:
        """Returns {line, name, value, remedy}."""
        return {name: getattr(self, name) for name in ("line", "name", "value", "remedy")}


@dataclass(frozen=True)
class Field:
    """A line of a block."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Directive:
    """A parsed block; what its kind does not have is empty."""

    kind: Kind
    line: int
    runs: tuple[uuid.UUID, ...] = ()
    series: tuple[str, ...] = ()
    axis: Axis = Axis.STEP
    tree: int | None = None
    experiment: str = ""
    tag: str = ""
    columns: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    title: str = ""
    frozen: str = ""
    """Any text: its figure is frozen; another text freezes it again. Empty is live."""
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict, compare=False)
    """Line of each name and value."""

    @property
    def key(self) -> str:
        """SHA-256 of all that decides which data the figure shows."""
        plain = [
            self.kind, list(map(str, self.runs)), self.series, self.axis, self.tree,
            self.experiment, self.tag, self.columns, self.metrics, self.frozen,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()

    def error(self, name: str, value: object, remedy: str) -> BlockError:
        """Returns the error of a value, with its line; of no value, with that of the block."""
        line = self.lines.get((name, str(value)), self.line)
        return BlockError(line, name, str(value), remedy)


def parse(block: Block) -> Directive:
    """Returns the directive of a block. Raises `BlockError`."""
    try:
        kind = Kind(block.info)
    except ValueError:
        given = block.info[:LONGEST_VALUE]
        raise BlockError(block.line, WORD, given, f"write {_one_of(Kind)}") from None
    values: dict[str, Any] = {}
    lines: dict[tuple[str, str], int] = {}
    for one in _fields(block):
        if one.name not in _FIELDS[kind]:
            remedy = f"a {kind} has {', '.join(_FIELDS[kind])}"
            raise BlockError(one.line, one.name, one.value, remedy)
        _READ[one.name](one, values)
        lines |= {(one.name, part): one.line for part in (one.value, *_parts(one.value))}
        if one.name == "run":
            lines["run", str(values["runs"][-1])] = one.line
    directive = Directive(kind, block.line, lines=lines, **values)
    _require_complete(directive)
    return directive


def _fields(block: Block) -> Iterator[Field]:
    for number, text in enumerate(block.lines, block.line + 1):
        if not text.strip():
            continue
        name, colon, value = (part.strip() for part in text.partition(":"))
        name = name[:LONGEST_VALUE]
        if not colon or not value:
            raise BlockError(number, "line", text.strip()[:LONGEST_VALUE], "write NAME: VALUE")
        if len(value) > LONGEST_VALUE or "\0" in value:
            remedy = f"give at most {LONGEST_VALUE} characters"
            raise BlockError(number, name, value[:40] + "…", remedy)
        yield Field(name, value, number)


def _read_run(one: Field, values: dict[str, Any]) -> None:
    match = _RUN.fullmatch(one.value)
    if match is None:
        raise _wrong(one, "give the id or the address of a run")
    run = uuid.UUID(match[1])
    runs = values.setdefault("runs", ())
    if run in runs:
        raise _wrong(one, "name each run once")
    if len(runs) == MOST_RUNS:
        raise _wrong(one, f"name at most {MOST_RUNS} runs")
    values["runs"] = (*runs, run)


def _read_names(key: str, most: int) -> Callable[[Field, dict[str, Any]], None]:
    def read(one: Field, values: dict[str, Any]) -> None:
        names = tuple(dict.fromkeys((*values.get(key, ()), *_parts(one.value))))
        if len(names) > most:
            raise _wrong(one, f"give at most {most} names")
        values[key] = names

    return read


def _read_columns(one: Field, values: dict[str, Any]) -> None:
    known = [column.key for column in COLUMNS]
    for name in _parts(one.value):
        if name not in known:
            raise BlockError(one.line, one.name, name, f"give some of {', '.join(known)}")
    _read_names("columns", len(known))(one, values)


def _read_axis(one: Field, values: dict[str, Any]) -> None:
    if one.value not in set(Axis):
        raise _wrong(one, f"give {_one_of(Axis)}")
    _once("axis", one, Axis(one.value), values)


def _read_tree(one: Field, values: dict[str, Any]) -> None:
    if not _TREE.fullmatch(one.value):
        raise _wrong(one, "give the number of a tree")
    _once("tree", one, int(one.value), values)


def _read_text(one: Field, values: dict[str, Any]) -> None:
    _once(one.name, one, one.value, values)


def _once(key: str, one: Field, value: Any, values: dict[str, Any]) -> None:
    if key in values:
        raise _wrong(one, f"give {one.name} once")
    values[key] = value


_READ: dict[str, Callable[[Field, dict[str, Any]], None]] = {
    "run": _read_run,
    "series": _read_names("series", MOST_SERIES),
    "x": _read_axis,
    "tree": _read_tree,
    "experiment": _read_text,
    "tag": _read_text,
    "columns": _read_columns,
    "metrics": _read_names("metrics", MOST_METRICS),
    "title": _read_text,
    "frozen": _read_text,
}
_FIELDS = {
    Kind.CHART: ("run", "series", "x", "title", "frozen"),
    Kind.TREE: ("run", "tree", "title", "frozen"),
    Kind.RUNS: ("run", "experiment", "tag", "columns", "metrics", "title", "frozen"),
}


def _require_complete(directive: Directive) -> None:
    kind, runs = directive.kind, directive.runs
    if kind is Kind.RUNS:
        if runs and (directive.experiment or directive.tag):
            raise directive.error("run", runs[0], "name runs, or an experiment and a tag: not both")
        return
    if not runs:
        raise directive.error("run", "", "add a line run: ID")
    if kind is Kind.CHART and not directive.series:
        raise directive.error("series", "", "add a line series: NAME")
    if kind is Kind.TREE and directive.tree is None:
        raise directive.error("tree", "", "add a line tree: NUMBER")
    if kind is Kind.TREE and len(runs) > 1:
        raise directive.error("run", runs[1], "a tree is of one run")


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _wrong(one: Field, remedy: str) -> BlockError:
    return BlockError(one.line, one.name, one.value, remedy)


def _one_of(kinds: type[StrEnum]) -> str:
    return f"one of {', '.join(kinds)}"
