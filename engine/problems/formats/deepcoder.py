"""DeepCoder-Preview (agentica-org): problems of TACO, PrimeIntellect, LiveCodeBench and Codeforces.

Row: `problem`, `tests` (JSON: {"inputs", "outputs", "fn_name"}, or a list of {"input", "output",
"type", "fn_name"}, or of {"input", "output", "testtype", "metadata"}), `solutions` (a list of
programs, mostly in blocks), `starter_code`, `metadata` ({"func_name"}).

Those with `testtype` are judged as LiveCodeBench, all others as APPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats import livecodebench
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.reshaped import problem_of, tests_of_cases
from engine.problems.problem import Problem

FIELDS = ("id", "problem", "tests", "solutions", "starter_code", "metadata")
_NAMES = {"question": "problem", "input_output": "tests"}
_NAMES_OF_LCB = {"question_content": "problem", "public_test_cases": "tests"}


def recognises(row: Mapping[str, Any]) -> bool:
    return {"problem", "tests"} <= row.keys()


def problem(fields: Fields) -> Problem:
    question, tests = fields.text("problem"), fields.json("tests")
    if isinstance(tests, list) and any(
        isinstance(one, dict) and "testtype" in one for one in tests
    ):
        return _of_livecodebench(fields, question, tests)
    if not isinstance(tests, dict):
        tests = tests_of_cases("tests", tests)
    return problem_of(
        fields, _NAMES, fields.id("id", "deepcoder"), question, tests, _solutions(fields)
    )


def _solutions(fields: Fields) -> list[str]:
    value = fields.data.get("solutions")
    if isinstance(value, str) and "```" not in value:
        value = fields.json("solutions")
    value = [value] if isinstance(value, str) else value
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _of_livecodebench(fields: Fields, question: str, tests: list[Any]) -> Problem:
    metadata = fields.json("metadata")
    if not (isinstance(metadata, dict) and metadata.get("func_name")):
        metadata = next((one["metadata"] for one in tests if one.get("metadata")), None)
    row = {
        "question_content": question,
        "question_id": fields.id("id", "deepcoder"),
        "starter_code": fields.text_or_empty("starter_code"),
        "public_test_cases": tests,
        "metadata": metadata,
    }
    try:
        return livecodebench.problem(Fields(row, fields.position))
    except RowError as error:
        name = _NAMES_OF_LCB.get(error.field, error.field)
        raise RowError(name, error.value, error.remedy) from None
