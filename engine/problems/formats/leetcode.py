"""LeetCodeDataset (newfacade): methods of a class `Solution`.

Row: `task_id`, `problem_description`, `starter_code`, `prompt` (the imports and classes that a
solution is given), `entry_point` ("Solution().twoSum"), `test` (Python that defines
`check(candidate)`), `completion` (a solution), `difficulty`, `tags`.

The prompt is the prelude. Problems whose tests pass objects of its classes are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.problems.formats import assertions, humaneval, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = (
    "task_id", "problem_description", "starter_code", "prompt", "entry_point", "test", "completion",
    "difficulty", "tags",
)  # fmt: skip
_ENTRY_POINT = re.compile(r"(\w+)\(\)\.(\w+)")


def recognises(row: Mapping[str, Any]) -> bool:
    return {"problem_description", "starter_code", "entry_point", "test"} <= row.keys()


def problem(fields: Fields) -> Problem:
    named = fields.text("entry_point")
    entry = _ENTRY_POINT.fullmatch(named)
    if entry is None:
        raise RowError("entry_point", named, "must be a method of a class, as `Solution().name`")
    entry_point, prelude = f"{entry[1]}.{entry[2]}", fields.text_or_empty("prompt")
    tests = humaneval.tests_of(fields.text("test"), entry[2])
    unjudged.refuse("test", [fields.text("test"), *tests], "candidate")
    assertions.refuse_own_objects("test", tests, "candidate", prelude)
    public, private = split_tests([CodeTest(code) for code in tests], [False] * len(tests))
    description, code = fields.text("problem_description"), fields.text_or_empty("starter_code")
    return Problem(
        id=fields.id("task_id", "leetcode"),
        statement=statements.starter(description, code, entry_point),
        entry_point=entry_point,
        public_tests=public,
        private_tests=private,
        reference=fields.text_or_empty("completion"),
        prelude=prelude,
        tags=fields.tags("difficulty", "tags"),
    )
