"""Formats of published data sets: one module each, and one line here.

A module has `FIELDS` (all fields that it reads), `recognises(row)` (whether a row with these
fields is one of its own) and `problem(fields)` (returns the problem of a row, or raises
`RowError`).

Invariant: the first format that recognises a row is used, so a format precedes those whose fields
it includes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.problems.formats import (
    acecode,
    apps,
    codecontests,
    cruxeval,
    evalplus,
    humaneval,
    kodcode,
    livecodebench,
    mbpp,
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


FORMATS: dict[str, Format] = {
    "evalplus": evalplus,
    "humaneval": humaneval,
    "mbpp": mbpp,
    "taco": taco,
    "apps": apps,
    "codecontests": codecontests,
    "livecodebench": livecodebench,
    "acecode": acecode,
    "kodcode": kodcode,
    "cruxeval": cruxeval,
}


def format_of(row: Mapping[str, Any]) -> str | None:
    """Returns the name of the format of a row; None if no format has these fields."""
    if {"statement", "entry_point"} <= row.keys():
        return OWN
    return next((name for name, one in FORMATS.items() if one.recognises(row)), None)
