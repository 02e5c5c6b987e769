"""CodeContests (google-deepmind/code_contests), in the layout of `datasets` or of its JSON.

Row: `name`, `description`, `public_tests`, `private_tests` and `generated_tests` (each
{"input": [...], "output": [...]}, or a list of such pairs), `solutions` ({"language": [...],
"solution": [...]}, language 3 or "PYTHON3" is Python 3), `time_limit` ({"seconds", "nanos"}),
`memory_limit_bytes`, `input_file` and `output_file`, `cf_tags`, `difficulty`.

Public tests stay public; private and generated tests are private. Problems that use files instead
of stdin are left out.

Outputs are compared as by the authors' checker (execution/tester_sandboxer.cc, `OutputsMatch`): by
words without case, numbers that differ by less than 1e-5 are equal. Unlike there, two whole numbers
are compared exactly: as doubles, large ones that are off by one would be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats import statements
from engine.problems.formats.fields import Fields, RowError, megabytes, seconds
from engine.problems.formats.input_output import TOLERANCE
from engine.problems.formats.references import usable
from engine.problems.formats.visible_tests import split_tests
from engine.problems.problem import Comparison, Limits, Problem, StdinTest

FIELDS = (
    "name", "description", "public_tests", "private_tests", "generated_tests", "solutions",
    "time_limit", "memory_limit_bytes", "input_file", "output_file", "cf_tags",
)  # fmt: skip
_PYTHON3 = (3, "3", "PYTHON3", "Python3", "python3")
_MIB = 1 << 20
_STANDARD = frozenset({"", "stdin", "stdout", "standard input", "standard output"})
"""Names of input and output that are no file."""


def recognises(row: Mapping[str, Any]) -> bool:
    return {"description", "public_tests", "private_tests"} <= row.keys()


def problem(fields: Fields) -> Problem:
    for field in ("input_file", "output_file"):
        name = fields.text_or_empty(field)
        if name.strip().lower() not in _STANDARD:
            raise RowError(field, name, "the program would use a file; only stdin can be given")
    description = fields.text("description")
    shown, hidden = _tests(fields, "public_tests"), _tests(fields, "private_tests")
    hidden += _tests(fields, "generated_tests")
    tests = [*shown, *hidden]
    if not tests:
        remedy = "and private_tests are empty; a problem without tests cannot be judged"
        raise RowError("public_tests", fields.data.get("public_tests"), remedy)
    if shown and hidden:
        public, private = tuple(shown), tuple(hidden)
    else:
        public, private = split_tests(tests, [False] * len(tests))  # type: ignore[assignment]
    reference, others = usable(_python3(fields), "")
    memory = fields.data.get("memory_limit_bytes")
    return Problem(
        id=fields.id("name", "codecontests"),
        statement=statements.whole_program(description),
        entry_point="",
        public_tests=public,
        private_tests=private,
        reference=reference,
        other_references=others,
        tags=fields.tags("cf_tags"),
        comparison=Comparison(TOLERANCE, output="words"),
        limits=Limits(
            seconds(fields.data.get("time_limit")),
            megabytes(memory / _MIB) if type(memory) is int and memory < _MIB << 40 else None,
        ),
    )


def _tests(fields: Fields, field: str) -> list[StdinTest]:
    table = _table(fields, field, ("input", "output"))
    for text in (text for pair in table for text in pair):
        if not isinstance(text, str):
            raise RowError(field, text, "inputs and outputs must be texts")
    return [StdinTest(given, expected) for given, expected in table]


def _python3(fields: Fields) -> list[str]:
    table = _table(fields, "solutions", ("language", "solution"))
    return [text for kind, text in table if kind in _PYTHON3 and isinstance(text, str)]


def _table(fields: Fields, field: str, names: tuple[str, str]) -> list[tuple[Any, Any]]:
    """Returns the pairs of a field that holds two lists of equal length, or a list of objects."""
    value = fields.json(field)
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return [(item.get(names[0]), item.get(names[1])) for item in value]
    first, second = (value.get(name) for name in names) if isinstance(value, dict) else (None, None)
    if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
        raise RowError(field, value, f"must hold lists `{names[0]}` and `{names[1]}`, equally long")
    return list(zip(first, second, strict=True))
