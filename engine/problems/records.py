"""Problems as JSON objects, in both directions: the format of our own files.

    {"id": "a-1", "statement": "...", "entry_point": "solve",
     "public_tests": [{"arguments": [[3, 1]], "expected": [1, 3]}],
     "private_tests": [{"arguments_literal": "((1, 2),)", "expected_literal": "{1, 2}"}],
     "reference": "def solve(x): ...", "difficulty": 1, "tags": ["sorting"],
     "prelude": "import math", "comparison": {"tolerance": 1e-6, "loose_types": true,
     "checker": "def check(given, expected, actual): ...", "output": "words"},
     "limits": {"seconds": 2.0, "memory_mb": 256}}

Everything after `private_tests` may be left out. `entry_point` is a function, a method
`Class.name`, or empty for a program that reads stdin and prints. A test is one of

    {"arguments": [1, 2], "expected": 3, "accepted": [4]}       a call
    {"stdin": "1 2\\n", "expected": "3\\n", "accepted": ["4"]}  a run of the whole program
    {"code": "assert candidate(1, 2) == 3"}                     Python that asserts

`arguments` is the JSON list of arguments, `expected` the JSON value and `accepted` the list of
other right answers; `comparison.output` says how printed texts are compared
(`engine.sandbox.cases.OUTPUTS`); values that JSON cannot represent (tuples, sets, bytes, nan, keys
that are not strings) are written as the text of a Python literal in `arguments_literal`,
`expected_literal` or `accepted_literal`.

Invariant: `RecordReader` reads back equal what `record` writes, or names every issue in it.
"""

from __future__ import annotations

import keyword
import math
import sys
from typing import Any

from engine.config.names import name_fault
from engine.problems.errors import DatasetIssue
from engine.problems.problem import (
    CallTest,
    CodeTest,
    Comparison,
    Limits,
    Problem,
    StdinTest,
    Test,
)
from engine.sandbox.cases import OUTPUTS
from engine.sandbox.guest.literals import LiteralError, from_literal, to_literal

REQUIRED = ("id", "statement", "entry_point", "public_tests", "private_tests")
OPTIONAL = ("reference", "difficulty", "tags", "prelude", "comparison", "limits")
_JSON_INT_BITS = 4096  # json refuses integers of more than 4300 digits
_KINDS = {
    "code": "{'code'}",
    "stdin": "{'stdin', 'expected', 'accepted'}",
    "arguments": "{'arguments', 'expected', 'accepted'}, each with or without _literal",
}
_PLACEHOLDER = CodeTest("")
LONE_SURROGATE = "holds half of a surrogate pair, which is no character; remove it"
NOT_AN_OBJECT = "must be one JSON object; correct the line, or remove it"
_INVALID = object()


def record(problem: Problem) -> dict[str, Any]:
    """Returns the problem as a JSON object; comparison and limits without their defaults.

    Raises:
        LiteralError: a test holds a value that is not plain.
    """
    data: dict[str, Any] = {
        "id": problem.id,
        "statement": problem.statement,
        "entry_point": problem.entry_point,
        "public_tests": [_plain_test(test) for test in problem.public_tests],
        "private_tests": [_plain_test(test) for test in problem.private_tests],
        "reference": problem.reference,
        "difficulty": problem.difficulty,
        "tags": list(problem.tags),
    }
    if problem.prelude:
        data["prelude"] = problem.prelude
    for name, value, default in (
        ("comparison", problem.comparison, Comparison()),
        ("limits", problem.limits, Limits()),
    ):
        fields = {field: getattr(value, field) for field in default.__slots__}
        changed = {f: v for f, v in fields.items() if v != getattr(default, f)}
        if changed:
            data[name] = changed
    return data


def _plain_test(test: Test) -> dict[str, Any]:
    if isinstance(test, CodeTest):
        return {"code": test.code}
    if isinstance(test, StdinTest):
        plain: dict[str, Any] = {"stdin": test.stdin, "expected": test.expected}
        return {**plain, "accepted": list(test.accepted)} if test.accepted else plain
    data = {
        **_value_or_literal("arguments", list(test.arguments)),
        **_value_or_literal("expected", test.expected),
    }
    return {**data, **_value_or_literal("accepted", list(test.accepted))} if test.accepted else data


def _value_or_literal(name: str, value: Any) -> dict[str, Any]:
    if _is_exact_in_json(value):
        return {name: value}
    return {f"{name}_literal": to_literal(value)}


def _is_exact_in_json(value: Any) -> bool:
    """Returns whether JSON preserves exactly this value."""
    kind = type(value)
    if kind is list:
        return all(map(_is_exact_in_json, value))
    if kind is dict:
        return all(type(key) is str and _is_exact_in_json(item) for key, item in value.items())
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return value.bit_length() <= _JSON_INT_BITS
    return kind in (str, bool, type(None))


class RecordReader:
    """Reader of the object of one line, which collects its issues."""

    def __init__(self, file: str, line: int):
        self.file = file
        self.line = line
        self.issues: list[DatasetIssue] = []

    def problem(self, data: Any) -> Problem | None:
        """Returns the problem of this line, or None if it has issues."""
        if type(data) is not dict:
            self.add_issue("line", data, NOT_AN_OBJECT)
            return None
        self._refuse_unknown_fields(data, REQUIRED + OPTIONAL, "")
        entry_point = self._entry_point(data)
        values = {
            "id": self._id(data),
            "statement": self._text(data, "statement"),
            "entry_point": entry_point,
            "public_tests": self._tests(data, "public_tests", entry_point),
            "private_tests": self._tests(data, "private_tests", entry_point),
            "reference": self._program(data, "reference"),
            "difficulty": self._difficulty(data),
            "tags": self._tags(data),
            "prelude": self._program(data, "prelude"),
            "comparison": self._comparison(data),
            "limits": self._limits(data),
        }
        return None if self.issues else Problem(**values)

    def add_issue(self, field: str, value: Any, remedy: str) -> None:
        self.issues.append(DatasetIssue(self.file, self.line, field, value, remedy))

    def _refuse_unknown_fields(
        self, data: dict[str, Any], allowed: tuple[str, ...], prefix: str
    ) -> None:
        for key in data:
            if key not in allowed:
                remedy = f"unknown field; allowed are {', '.join(allowed)}"
                self.add_issue(f"{prefix}{key}", data[key], remedy)

    def _text(self, data: dict[str, Any], field: str) -> str:
        value = data.get(field)
        if type(value) is not str or not value.strip():
            self.add_issue(field, value, "must be a text that is not empty")
        elif not is_unicode(value):
            self.add_issue(field, value, LONE_SURROGATE)
        return value  # type: ignore[return-value]

    def _id(self, data: dict[str, Any]) -> str:
        known = len(self.issues)
        value = self._text(data, "id")
        if len(self.issues) == known and (fault := name_fault(value)):
            self.add_issue("id", value, fault)
        return value

    def _entry_point(self, data: dict[str, Any]) -> str:
        value = data.get("entry_point")
        if value != "" and not is_entry_point(value):
            remedy = (
                "must be the name of the function to write, `Class.name` for a method, or empty "
                "for a program that reads stdin"
            )
            self.add_issue("entry_point", value, remedy)
        return value  # type: ignore[return-value]

    def _program(self, data: dict[str, Any], field: str) -> str:
        value = data.get(field, "")
        if type(value) is not str:
            self.add_issue(field, value, "must be the text of a program, or left out")
        return value

    def _difficulty(self, data: dict[str, Any]) -> int:
        value = data.get("difficulty", 0)
        if type(value) is not int or value < 0 or value.bit_length() > _JSON_INT_BITS:
            self.add_issue("difficulty", value, "must be a whole number, 0 or more, or left out")
        return value

    def _tags(self, data: dict[str, Any]) -> tuple[str, ...]:
        value = data.get("tags", [])
        if type(value) is not list or any(type(tag) is not str for tag in value):
            self.add_issue("tags", value, "must be a list of texts, or left out")
            return ()
        return tuple(value)

    def _comparison(self, data: dict[str, Any]) -> Comparison:
        value = self._object(data, "comparison", Comparison.__slots__)
        tolerance = value.get("tolerance")
        if tolerance is not None and not _is_positive(tolerance):
            self.add_issue(
                "comparison.tolerance", tolerance, "must be a number above 0, or left out"
            )
        loose = value.get("loose_types", False)
        if type(loose) is not bool:
            self.add_issue("comparison.loose_types", loose, "must be true or false, or left out")
        checker = value.get("checker", "")
        if type(checker) is not str or (checker and "def check(" not in checker):
            remedy = "must be Python that defines check(given, expected, actual), or left out"
            self.add_issue("comparison.checker", checker, remedy)
        output = value.get("output", "")
        if output not in OUTPUTS:
            remedy = f"must be one of {', '.join(filter(None, OUTPUTS))}, or left out"
            self.add_issue("comparison.output", output, remedy)
        return Comparison(tolerance, loose, checker, output)

    def _limits(self, data: dict[str, Any]) -> Limits:
        value = self._object(data, "limits", Limits.__slots__)
        seconds, memory = value.get("seconds"), value.get("memory_mb")
        if seconds is not None and not (_is_positive(seconds) and seconds <= Limits.MAX_SECONDS):
            remedy = f"must be a number above 0 and at most {Limits.MAX_SECONDS:.0f}, or left out"
            self.add_issue("limits.seconds", seconds, remedy)
        most = Limits.MAX_MEMORY_MB
        if memory is not None and not (type(memory) is int and 1 <= memory <= most):
            remedy = f"must be a whole number from 1 to {most}, or left out"
            self.add_issue("limits.memory_mb", memory, remedy)
        return Limits(seconds, memory)

    def _object(self, data: dict[str, Any], field: str, allowed: Any) -> dict[str, Any]:
        value = data.get(field, {})
        if type(value) is not dict:
            self.add_issue(
                field, value, f"must be an object with {', '.join(allowed)}, or left out"
            )
            return {}
        self._refuse_unknown_fields(value, tuple(allowed), f"{field}.")
        return value

    def _tests(self, data: dict[str, Any], field: str, entry_point: str) -> tuple[Test, ...]:
        tests = data.get(field)
        if type(tests) is not list or not tests:
            self.add_issue(field, tests, "must be a list of at least one test")
            return ()
        return tuple(
            [self._test(test, f"{field}[{i}]", entry_point) for i, test in enumerate(tests)]
        )

    def _test(self, test: Any, field: str, entry_point: str) -> Test:
        if type(test) is not dict:
            self.add_issue(field, test, 'must be an object like {"arguments": [1], "expected": 2}')
            return _PLACEHOLDER
        kind = next((kind for kind in ("code", "stdin") if kind in test), "arguments")
        if (kind == "stdin") != (entry_point == ""):
            remedy = (
                "an empty entry_point goes with tests of stdin, and any other with calls or code"
            )
            self.add_issue(field, test, remedy)
        for key in test:
            name = key.removesuffix("_literal") if kind == "arguments" else key
            if f"'{name}'" not in _KINDS[kind]:
                self.add_issue(
                    f"{field}.{key}", test[key], f"unknown field; allowed are {_KINDS[kind]}"
                )
        if kind == "code":
            return CodeTest(self._test_text(test, "code", field))
        if kind == "stdin":
            return self._stdin_test(test, field)
        return self._call_test(test, field)

    def _stdin_test(self, test: dict[str, Any], field: str) -> StdinTest:
        accepted = test.get("accepted", [])
        if type(accepted) is not list or any(type(text) is not str for text in accepted):
            self.add_issue(f"{field}.accepted", accepted, "must be a list of texts, or left out")
            accepted = list[str]()
        stdin, expected = (self._test_text(test, name, field) for name in ("stdin", "expected"))
        return StdinTest(stdin, expected, tuple(accepted))

    def _test_text(self, test: dict[str, Any], name: str, field: str) -> str:
        if type(test.get(name)) is not str:
            self.add_issue(f"{field}.{name}", test.get(name), "must be a text")
            return ""
        if not is_unicode(test[name]):
            self.add_issue(f"{field}.{name}", test[name], LONE_SURROGATE)
        return test[name]

    def _call_test(self, test: dict[str, Any], field: str) -> CallTest:
        arguments = self._list(test, "arguments", field)
        expected = self._value(test, "expected", field)
        some = "accepted" in test or "accepted_literal" in test
        return CallTest(arguments, expected, self._list(test, "accepted", field) if some else ())

    def _list(self, test: dict[str, Any], name: str, field: str) -> tuple[Any, ...]:
        value = self._value(test, name, field)
        if type(value) in (list, tuple):
            return tuple(value)
        if value is not _INVALID:
            what = "arguments" if name == "arguments" else "other right answers"
            self.add_issue(f"{field}.{name}", value, f"must be a list of {what}")
        return ()

    def _value(self, test: dict[str, Any], name: str, field: str) -> Any:
        """Returns the value under `name` or `name_literal`; `_INVALID` if not exactly one is
        given, or if it is not plain."""
        literal = f"{name}_literal"
        if (name in test) == (literal in test):
            self.add_issue(f"{field}.{name}", test.get(name), f"give either {name} or {literal}")
            return _INVALID
        key = name if name in test else literal
        try:
            if key == literal and type(test[key]) is not str:
                raise LiteralError("must be the text of a Python literal")
            value = from_literal(test[key]) if key == literal else test[key]
            to_literal(value)  # the sandbox transfers only plain values
        except LiteralError as error:
            self.add_issue(f"{field}.{key}", test[key], f"{error}; write plain values only")
            return _INVALID
        return value


def is_unicode(text: str) -> bool:
    """Returns whether models, files and databases accept this text (no lone surrogates)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_entry_point(value: Any) -> bool:
    """Returns whether this is `name` or `Class.name`."""
    names = value.split(".") if type(value) is str else []
    return len(names) in (1, 2) and all(
        n.isidentifier() and not keyword.iskeyword(n) for n in names
    )


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= sys.float_info.max
