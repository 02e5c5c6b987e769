"""Rows of data sets for reinforcement learning, whose problems are those of APPS and TACO in fields
of other names: read as rows of APPS.

Invariant: a `RowError` names the field of the row that was read, not that of APPS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.problems.extraction import extract_program
from engine.problems.formats import apps
from engine.problems.formats.fields import Fields, RowError
from engine.problems.problem import Problem

_KINDS = ("stdin_stdout", "function_call", None)


def problem_of(
    fields: Fields,
    names: Mapping[str, str],
    identity: str,
    question: str,
    tests: Mapping[str, Any],
    solutions: Sequence[str] = (),
) -> Problem:
    """Returns the problem of a question with `tests` as APPS has them (`inputs`, `outputs`,
    `fn_name`); `names` gives the row's own name of each field of APPS. Raises `RowError`."""
    row = {
        "question": question,
        "input_output": dict(tests),
        "solutions": [
            program for text in solutions if (program := _program(text, tests.get("fn_name")))
        ],
        "starter_code": fields.text_or_empty("starter_code"),
    }
    try:
        return apps.of_row(Fields(row, fields.position), identity, ())
    except RowError as error:
        name = names.get(error.field, error.field)
        raise RowError(name, error.value, error.remedy) from None


def _program(text: str, function: Any) -> str:
    """Returns the program of a solution, which some sets keep in the block of an answer."""
    if "```" not in text:
        return text
    entries = (function, f"Solution.{function}") if function else ("",)
    return next((found for one in entries if (found := extract_program(text, one))), "")


def tests_of_cases(field: str, cases: Any) -> dict[str, Any]:
    """Returns the tests of a list of `input` and `output`, each with `type` and `fn_name` or
    without. Raises `RowError`."""
    if not isinstance(cases, list) or not all(isinstance(one, dict) for one in cases):
        raise RowError(field, cases, "must be a list of objects with `input` and `output`")
    for one in cases:
        if not {"input", "output"} <= one.keys():
            raise RowError(field, one, "must have `input` and `output`")
        if one.get("type") not in _KINDS:
            remedy = "must be stdin_stdout or function_call; no other kind of test is run"
            raise RowError(f"{field}.type", one.get("type"), remedy)
    functions = {one.get("fn_name") or "" for one in cases}
    if len(functions) > 1:
        raise RowError(field, sorted(map(str, functions)), "names several functions; give one")
    return {
        "fn_name": next(iter(functions), ""),
        "inputs": [one["input"] for one in cases],
        "outputs": [one["output"] for one in cases],
    }
