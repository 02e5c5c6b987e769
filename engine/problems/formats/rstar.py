"""rStar-Coder (microsoft), its problems with tests: those of contests, and ones made from them.

Row: `question_id`, `question`, `inputs` and `outputs` (JSON lists), `func_name`, `starter_code`,
`solution` or `code`.

Judged as APPS. There are mostly no references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats.fields import Fields
from engine.problems.formats.reshaped import problem_of
from engine.problems.problem import Problem

FIELDS = (
    "question_id", "question", "inputs", "outputs", "func_name", "fn_name", "starter_code",
    "solution", "code",
)  # fmt: skip
_NAMES = {"input_output": "inputs"}


def recognises(row: Mapping[str, Any]) -> bool:
    return {"question", "inputs", "outputs"} <= row.keys()


def problem(fields: Fields) -> Problem:
    tests = {
        "fn_name": fields.text_or_empty("func_name", "fn_name"),
        "inputs": fields.json("inputs"),
        "outputs": fields.json("outputs"),
    }
    solution = fields.text_or_empty("solution", "code")
    identity = fields.id("question_id", "rstar")
    return problem_of(fields, _NAMES, identity, fields.text("question"), tests, [solution])
