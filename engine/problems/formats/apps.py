"""APPS (hendrycks/apps, codeparrot/apps), as a table or in its original folders.

Row: `problem_id`, `question`, `input_output` (JSON, see `input_output`), `solutions` (JSON list of
programs), `starter_code`, `difficulty`, `url`.

The reference is the first solution that parses as Python 3 and defines the entry point; if it fails
its tests, one of the next few that passes. Tests that
appear in the question are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats import statements
from engine.problems.formats.fields import Fields, RowError, function_name
from engine.problems.formats.input_output import (
    call_test,
    comparison_of_calls,
    comparison_of_texts,
    pairs,
    stdin_test,
)
from engine.problems.formats.references import USUAL_IMPORTS, method_or_function, usable
from engine.problems.formats.visible_tests import normalized, shows_call, shows_run, split_tests
from engine.problems.problem import CallTest, Limits, Problem, StdinTest
from engine.sandbox.guest.literals import to_literal

FIELDS = (
    "problem_id", "id", "question", "input_output", "solutions", "starter_code", "difficulty",
)  # fmt: skip

LIMITS = Limits(seconds=4.0)
"""Limits of one test in the authors' metric."""


def recognises(row: Mapping[str, Any]) -> bool:
    return {"question", "input_output"} <= row.keys()


def problem(fields: Fields) -> Problem:
    name = "id" if fields.data.get("problem_id") is None else "problem_id"
    return of_row(fields, fields.id(name, "apps"), fields.tags("difficulty"))


def of_row(fields: Fields, id: str, tags: tuple[str, ...], limits: Limits | None = None) -> Problem:
    """Returns the problem of a row of APPS, or of a data set with the same main fields."""
    question, data = fields.text("question"), fields.json("input_output")
    if not data:
        raise RowError("input_output", data, "is empty; a problem without tests cannot be judged")
    function = data.get("fn_name") if isinstance(data, dict) else None
    solutions, code = _solutions(fields), fields.text_or_empty("starter_code")
    limits = limits or LIMITS
    if not function:
        tests = [stdin_test("input_output", *pair) for pair in pairs("input_output", data)]
        return _program(id, question, tests, usable(solutions, ""), tags, limits)
    calls = [call_test("input_output", *pair) for pair in pairs("input_output", data)]
    name = function_name("input_output", function)
    entry_point = method_or_function(name, code, *solutions)
    reference, others = usable(solutions, entry_point)
    statement = normalized(question)
    shown = [shows_call(statement, name, _arguments(call)) for call in calls]
    public, private = split_tests(calls, shown)
    return Problem(
        id=id,
        statement=statements.starter(question, code, entry_point),
        entry_point=entry_point,
        public_tests=public,
        private_tests=private,
        reference=reference,
        tags=tags,
        prelude=USUAL_IMPORTS,
        comparison=comparison_of_calls(),
        limits=limits,
        other_references=others,
    )


def _program(
    id: str,
    question: str,
    tests: list[StdinTest],
    references: tuple[str, tuple[str, ...]],
    tags: tuple[str, ...],
    limits: Limits,
) -> Problem:
    statement = normalized(question)
    shown = [shows_run(statement, test.stdin, test.expected) for test in tests]
    public, private = split_tests(tests, shown)
    return Problem(
        id=id,
        statement=statements.whole_program(question),
        entry_point="",
        public_tests=public,
        private_tests=private,
        reference=references[0],
        tags=tags,
        prelude=USUAL_IMPORTS,
        comparison=comparison_of_texts([test.expected for test in tests]),
        limits=limits,
        other_references=references[1],
    )


def _arguments(test: CallTest) -> str:
    return ", ".join(map(to_literal, test.arguments))


def _solutions(fields: Fields) -> list[str]:
    value = fields.data.get("solutions")
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith(("[", '"')):
        return [value]  # one program
    value = fields.json("solutions")
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
