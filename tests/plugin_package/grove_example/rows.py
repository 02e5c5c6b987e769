"""Rows {name, task, given, expected}: one problem each; its test is public and private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats.fields import Fields
from engine.problems.problem import CallTest, Problem

FIELDS = ("name", "task", "given", "expected")


def recognises(row: Mapping[str, Any]) -> bool:
    """Returns whether a row has these fields."""
    return set(FIELDS) <= row.keys()


def problem(fields: Fields) -> Problem:
    """Returns the problem of a row. Raises `RowError`."""
    test = CallTest((fields.text("given"),), fields.text("expected"))
    return Problem(
        id=fields.text("name"),
        statement=fields.text("task"),
        entry_point="solve",
        public_tests=(test,),
        private_tests=(test,),
    )
