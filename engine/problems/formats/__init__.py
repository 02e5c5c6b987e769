"""Formats of published data sets: one module each, and one line here (docs/extending.md).

A module has `FIELDS` (all fields that it reads), `recognises(row)` (whether a row with these
fields is one of its own) and `problem(fields)` (returns the problem of a row, or raises
`RowError`).

Invariant: the first format that recognises a row is used, so a format precedes those whose fields
it includes. Those of other packages come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.config.methods import Methods
from engine.problems.formats import (
    acecode,
    apps,
    codecontests,
    cruxeval,
    deepcoder,
    eurus,
    evalplus,
    humaneval,
    kodcode,
    leetcode,
    livecodebench,
    mbpp,
    primeintellect,
    rstar,
    taco,
)
from engine.problems.formats.fields import Fields
from engine.problems.problem import Problem

OWN = "grove"
"""Our own JSONL, read strictly by `engine.problems.jsonl`."""
DETECTED = "auto"


class Format(Protocol):
    @property
    def FIELDS(self) -> tuple[str, ...]: ...

    def recognises(self, row: Mapping[str, Any]) -> bool: ...

    def problem(self, fields: Fields) -> Problem: ...


def published_format(module: Any) -> Format:
    """Returns a module as the format that it holds.

    Raises:
        ValueError: it holds none.
    """
    fields = getattr(module, "FIELDS", None)
    if not isinstance(fields, tuple) or not all(isinstance(one, str) for one in fields):
        raise ValueError("has no FIELDS, the names of all fields that it reads")
    for name in ("recognises", "problem"):
        if not callable(getattr(module, name, None)):
            raise ValueError(f"has no function {name}")
    return module


FORMATS: Methods[Format] = Methods(
    "formats",
    published_format,
    evalplus,
    leetcode,
    humaneval,
    mbpp,
    taco,
    apps,
    codecontests,
    livecodebench,
    acecode,
    kodcode,
    cruxeval,
    primeintellect,
    deepcoder,
    eurus,
    rstar,
)


def format_of(row: Mapping[str, Any]) -> str | None:
    """Returns the name of the format of a row; None if no format has these fields."""
    if {"statement", "entry_point"} <= row.keys():
        return OWN
    return next(
        (name for name, one in FORMATS.every().items() if _recognises(name, one, row)), None
    )


def _recognises(name: str, one: Format, row: Mapping[str, Any]) -> bool:
    try:
        return one.recognises(row)
    except Exception:
        if name in FORMATS.own:
            raise
        return False  # of another package: its rows are read if the format is named
