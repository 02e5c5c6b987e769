"""LiveCodeBench (livecodebench/code_generation and code_generation_lite).

Row: `question_title`, `question_content`, `question_id`, `platform`, `difficulty`, `contest_date`,
`starter_code`, `public_test_cases` and `private_test_cases` (JSON lists of {"input", "output",
"testtype"}), `metadata` (JSON with `func_name`).

A functional input is one JSON value per line, one for each argument; its output is a JSON value,
and the entry point is the method of `Solution` that `func_name` names. Private tests of the lite
sets are packed, see `packed`. This data set has no references.

Printed texts are compared as by the authors' metric (lcb_runner/evaluation/testing_util.py,
`grade_stdio`): by lines without blanks around them, or their words as exact decimals. Programs of
both kinds are given the names that it gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.containers.text import parsed
from engine.problems.formats import packed, statements
from engine.problems.formats.fields import Fields, RowError, function_name, plain
from engine.problems.formats.input_output import comparison_of_calls
from engine.problems.formats.references import USUAL_IMPORTS, method_or_function
from engine.problems.formats.visible_tests import split_tests
from engine.problems.problem import CallTest, Comparison, Limits, Problem, StdinTest

FIELDS = (
    "question_title", "question_content", "question_id", "platform", "difficulty", "starter_code",
    "public_test_cases", "private_test_cases", "metadata",
)  # fmt: skip
_KINDS = ("functional", "stdin", None)
_LIMITS = Limits(seconds=6.0)
"""Limits of one test in the authors' metric."""


def recognises(row: Mapping[str, Any]) -> bool:
    return {"question_content", "public_test_cases"} <= row.keys()


def problem(fields: Fields) -> Problem:
    content, code = fields.text("question_content"), fields.text_or_empty("starter_code")
    cases = {name: _cases(fields, name) for name in ("public_test_cases", "private_test_cases")}
    everything = [case for part in cases.values() for case in part]
    if not everything:
        remedy = "is empty; a problem without tests cannot be judged"
        raise RowError("public_test_cases", [], remedy)
    function = _function(fields)
    is_call = everything[0].get("testtype") == "functional"
    if is_call and not function:
        raise RowError(
            "metadata", fields.data.get("metadata"), "must name func_name, as tests call"
        )
    make = _call_test if is_call else _stdin_test
    shown, hidden = ([make(name, case) for case in part] for name, part in cases.items())
    if shown and hidden:
        public, private = tuple(shown), tuple(hidden)
    else:
        public, private = split_tests([*shown, *hidden], [False] * len(everything))
    entry_point = ""
    if is_call:
        entry_point = method_or_function(function_name("metadata", function), code)
    return Problem(
        id=fields.id("question_id", "livecodebench"),
        statement=(
            statements.starter(content, code, entry_point)
            if is_call
            else statements.whole_program(content)
        ),
        entry_point=entry_point,
        public_tests=public,
        private_tests=private,
        tags=fields.tags("platform", "difficulty"),
        prelude=USUAL_IMPORTS,
        limits=_LIMITS,
        comparison=comparison_of_calls() if is_call else Comparison(output="decimals"),
    )


def _cases(fields: Fields, field: str) -> list[dict[str, Any]]:
    value = fields.data.get(field)
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        value = parsed(packed.text_of(field, value))
    else:
        value = fields.json(field)
    value = list[Any]() if value is None else value
    is_list = isinstance(value, list) and all(isinstance(case, dict) for case in value)
    if not is_list or not all({"input", "output"} <= case.keys() for case in value):
        raise RowError(field, value, "must be a list of objects with `input` and `output`")
    kinds = [case.get("testtype") for case in value]
    if kind := next((one for one in kinds if one not in _KINDS), None):
        raise RowError(f"{field}.testtype", kind, "must be functional or stdin")
    if any(one != kinds[0] for one in kinds):
        raise RowError(field, value, "mixes testtypes; a problem is either functional or stdin")
    return value


def _function(fields: Fields) -> str:
    metadata = fields.json("metadata")
    name = metadata.get("func_name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _stdin_test(field: str, case: dict[str, Any]) -> StdinTest:
    for name in ("input", "output"):
        if not isinstance(case[name], str):
            raise RowError(f"{field}.{name}", case[name], "must be a text")
    return StdinTest(case["input"], case["output"])


def _call_test(field: str, case: dict[str, Any]) -> CallTest:
    _stdin_test(field, case)
    lines = [line for line in case["input"].split("\n") if line.strip()]
    arguments = [_json(f"{field}.input", line) for line in lines]
    return CallTest(tuple(arguments), _json(f"{field}.output", case["output"]))


def _json(field: str, text: str) -> Any:
    value = parsed(text)
    if isinstance(value, ValueError):
        raise RowError(field, text, f"must be one JSON value per line: {value}")
    return plain(field, value)
