"""PrimeIntellect's verifiable-coding-problems, and the programs of SYNTHETIC-1 and -2.

Row: `problem_id`, `prompt`, `verification_info` ({"language", "test_cases": [{"type", "fn_name",
"input", "output"}]}, also as text), `gold_standard_solution` (a program, mostly in a block).

Judged as APPS, from which its problems come. Rows of other tasks, and of other languages than
Python, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.reshaped import problem_of, tests_of_cases
from engine.problems.problem import Problem

FIELDS = ("problem_id", "prompt", "verification_info", "gold_standard_solution")
_NAMES = {"question": "prompt", "input_output": "verification_info.test_cases"}


def recognises(row: Mapping[str, Any]) -> bool:
    return {"prompt", "verification_info"} <= row.keys()


def problem(fields: Fields) -> Problem:
    info = fields.json("verification_info")
    if not isinstance(info, dict) or "test_cases" not in info:
        raise RowError("verification_info", info, "must hold `test_cases`; only programs are run")
    language = info.get("language", "python")
    if language not in ("python", "python3", None):
        raise RowError("verification_info.language", language, "must be python; no other is run")
    tests = tests_of_cases("verification_info.test_cases", info["test_cases"])
    solution = fields.text_or_empty("gold_standard_solution")
    identity = fields.id("problem_id", "primeintellect")
    return problem_of(fields, _NAMES, identity, fields.text("prompt"), tests, [solution])
