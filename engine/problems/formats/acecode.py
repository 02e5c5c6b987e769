"""AceCode-87K (TIGER-Lab): questions with tests written by models.

Row: `id`, `source`, `question`, `test_cases`, in V2 `tests` (assertions), `inferences`
(answers of models: `completion`, `pass_rate`).

The entry point is the function that the assertions call. The reference is the program of an answer
that passed all tests, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.extraction import extract_program
from engine.problems.formats import assertions, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import normalized, shows_call, split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = ("id", "source", "question", "test_cases", "tests", "inferences")


def recognises(row: Mapping[str, Any]) -> bool:
    return "question" in row and bool({"test_cases", "tests"} & row.keys())


def problem(fields: Fields) -> Problem:
    field = "test_cases" if "test_cases" in fields.data else "tests"
    question, tests = fields.text("question"), fields.texts(field)
    if not tests:
        raise RowError(field, tests, "holds no test; a problem without tests is no problem")
    reference = _reference(fields)
    name = assertions.function_under_test(field, tests, reference)
    assertions.refuse_further_functions(field, tests, reference, name)
    unjudged.refuse(field, tests, name)
    assertions.refuse_own_objects(field, tests, name)
    statement = normalized(question)
    calls = [assertions.called(test, name) for test in tests]
    shown = [bool(call) and shows_call(statement, name, call) for call in calls]
    public, private = split_tests([CodeTest(test) for test in tests], shown)
    return Problem(
        id=fields.id("id", "acecode"),
        statement=statements.function(
            question, name, statements.signature_of(reference, name), [t.code for t in public]
        ),
        entry_point=name,
        public_tests=public,
        private_tests=private,
        reference=reference,
        tags=fields.tags("source"),
    )


def _reference(fields: Fields) -> str:
    answers = fields.data.get("inferences")
    for answer in answers if isinstance(answers, list) else []:
        if isinstance(answer, dict) and answer.get("pass_rate") == 1.0:
            program = extract_program(str(answer.get("completion", "")))
            if program:
                return program
    return ""
