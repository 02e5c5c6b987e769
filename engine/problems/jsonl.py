"""Problems in a JSONL file: one JSON object per line.

    {"id": "a-1", "statement": "...", "entry_point": "solve",
     "public_tests": [{"arguments": [[3, 1]], "expected": [1, 3]}],
     "private_tests": [{"arguments_literal": "((1, 2),)", "expected_literal": "{1, 2}"}],
     "reference": "def solve(x): ...", "difficulty": 1, "tags": ["sorting"]}

`reference`, `difficulty` and `tags` may be left out. `arguments` is the JSON list of arguments
and `expected` the JSON value; what JSON cannot say (tuples, sets, bytes, nan, keys that are not
strings) is written as the text of a Python literal in `arguments_literal` (a list or tuple) or
`expected_literal`.

Invariant: a file is read whole or not at all; `DatasetError` names every fault in it.
"""

from __future__ import annotations

import json
import keyword
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.problems.errors import DatasetError, DatasetFault
from engine.problems.literals import MAX_DEPTH, LiteralError, from_literal, to_literal
from engine.problems.problem import CallTest, Problem

_REQUIRED = ("id", "statement", "entry_point", "public_tests", "private_tests")
_OPTIONAL = ("reference", "difficulty", "tags")
_JSON_INT_BITS = 4096  # json refuses integers of more than 4300 digits


def load_problems(path: str | Path) -> list[Problem]:
    """All problems of a file, in its order.

    Raises:
        DatasetError: naming every fault; nothing is left out silently.
    """
    path = Path(path)
    faults: list[DatasetFault] = []
    problems: list[Problem] = []
    first_line: dict[str, int] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        remedy = f"cannot be read: {error.strerror}"
        raise DatasetError([DatasetFault(str(path), 0, "file", str(path), remedy)]) from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        reader = _Reader(str(path), number)
        problem = reader.problem(line)
        faults += reader.faults
        if problem is None:
            continue
        if problem.id in first_line:
            remedy = f"already used in line {first_line[problem.id]}; ids must differ"
            faults.append(DatasetFault(str(path), number, "id", problem.id, remedy))
        first_line.setdefault(problem.id, number)
        problems.append(problem)
    if not problems and not faults:
        faults.append(DatasetFault(str(path), 0, "file", str(path), "holds no problem; add one"))
    if faults:
        raise DatasetError(faults)
    return problems


def save_problems(path: str | Path, problems: Iterable[Problem]) -> None:
    """Write a file that `load_problems` reads back equal; replaces it whole or not at all.

    Raises:
        LiteralError: a test holds a value that is not plain.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(_plain(problem)) + "\n" for problem in problems)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _plain(problem: Problem) -> dict[str, Any]:
    return {
        "id": problem.id,
        "statement": problem.statement,
        "entry_point": problem.entry_point,
        "public_tests": [_plain_test(test) for test in problem.public_tests],
        "private_tests": [_plain_test(test) for test in problem.private_tests],
        "reference": problem.reference,
        "difficulty": problem.difficulty,
        "tags": list(problem.tags),
    }


def _plain_test(test: CallTest) -> dict[str, Any]:
    arguments = list(test.arguments)
    return {**_either("arguments", arguments), **_either("expected", test.expected)}


def _either(name: str, value: Any) -> dict[str, Any]:
    if _json_says(value):
        return {name: value}
    return {f"{name}_literal": to_literal(value)}


def _json_says(value: Any) -> bool:
    """Whether JSON gives back exactly this value."""
    kind = type(value)
    if kind is list:
        return all(map(_json_says, value))
    if kind is dict:
        return all(type(key) is str and _json_says(item) for key, item in value.items())
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return value.bit_length() <= _JSON_INT_BITS
    return kind in (str, bool, type(None))


class _Reader:
    """Reads one line and collects its faults."""

    def __init__(self, file: str, line: int):
        self.file = file
        self.line = line
        self.faults: list[DatasetFault] = []

    def problem(self, line: bytes) -> Problem | None:
        """The problem of this line, or None if it has faults."""
        data = self._object(line)
        if data is None:
            return None
        self._keys(data)
        values = {
            "id": self._text(data, "id"),
            "statement": self._text(data, "statement"),
            "entry_point": self._entry_point(data),
            "public_tests": self._tests(data, "public_tests"),
            "private_tests": self._tests(data, "private_tests"),
            "reference": self._reference(data),
            "difficulty": self._difficulty(data),
            "tags": self._tags(data),
        }
        return None if self.faults else Problem(**values)

    def _fault(self, field: str, value: Any, remedy: str) -> None:
        self.faults.append(DatasetFault(self.file, self.line, field, value, remedy))

    def _object(self, line: bytes) -> dict[str, Any] | None:
        try:
            data = json.loads(
                line.decode("utf-8"), object_pairs_hook=_no_twice, parse_constant=_not_json
            )
        except RecursionError:
            self._fault("line", line[:40], f"is nested too deeply; at most {MAX_DEPTH} levels")
            return None
        except ValueError as error:
            self._fault("line", line[:80], f"is not a JSON object in UTF-8: {error}")
            return None
        if type(data) is not dict:
            self._fault("line", data, "must be one JSON object")
            return None
        return data

    def _keys(self, data: dict[str, Any]) -> None:
        for key in data:
            if key not in _REQUIRED + _OPTIONAL:
                allowed = ", ".join(_REQUIRED + _OPTIONAL)
                self._fault(key, data[key], f"unknown field; allowed are {allowed}")

    def _text(self, data: dict[str, Any], field: str) -> str:
        value = data.get(field)
        if type(value) is not str or not value.strip():
            self._fault(field, value, "must be a text that is not empty")
        return value  # type: ignore[return-value]

    def _entry_point(self, data: dict[str, Any]) -> str:
        value = data.get("entry_point")
        if type(value) is not str or not value.isidentifier() or keyword.iskeyword(value):
            self._fault("entry_point", value, "must be the name of the function to write")
        return value  # type: ignore[return-value]

    def _reference(self, data: dict[str, Any]) -> str:
        value = data.get("reference", "")
        if type(value) is not str:
            self._fault("reference", value, "must be the text of a program, or left out")
        return value

    def _difficulty(self, data: dict[str, Any]) -> int:
        value = data.get("difficulty", 0)
        if type(value) is not int or value < 0:
            self._fault("difficulty", value, "must be a whole number, 0 or more, or left out")
        return value

    def _tags(self, data: dict[str, Any]) -> tuple[str, ...]:
        value = data.get("tags", [])
        if type(value) is not list or any(type(tag) is not str for tag in value):
            self._fault("tags", value, "must be a list of texts, or left out")
            return ()
        return tuple(value)

    def _tests(self, data: dict[str, Any], field: str) -> tuple[CallTest, ...]:
        tests = data.get(field)
        if type(tests) is not list or not tests:
            self._fault(field, tests, "must be a list of at least one test")
            return ()
        return tuple([self._test(test, f"{field}[{i}]") for i, test in enumerate(tests)])

    def _test(self, test: Any, field: str) -> CallTest:
        if type(test) is not dict:
            self._fault(field, test, 'must be an object like {"arguments": [1], "expected": 2}')
            return CallTest((), None)
        for key in test:
            if key.removesuffix("_literal") not in ("arguments", "expected"):
                self._fault(f"{field}.{key}", test[key], "unknown field; see the file format")
        arguments = self._value(test, "arguments", field)
        if type(arguments) not in (list, tuple):
            if arguments is not _FAULTY:
                self._fault(f"{field}.arguments", arguments, "must be a list of arguments")
            arguments = ()
        return CallTest(tuple(arguments), self._value(test, "expected", field))

    def _value(self, test: dict[str, Any], name: str, field: str) -> Any:
        """The value under `name` or `name_literal`; _FAULTY if there is not exactly one."""
        literal = f"{name}_literal"
        if (name in test) == (literal in test):
            self._fault(f"{field}.{name}", test.get(name), f"give either {name} or {literal}")
            return _FAULTY
        key = name if name in test else literal
        try:
            if key == literal and type(test[key]) is not str:
                raise LiteralError("must be the text of a Python literal")
            value = from_literal(test[key]) if key == literal else test[key]
            to_literal(value)  # the sandbox carries nothing else
        except LiteralError as error:
            self._fault(f"{field}.{key}", test[key], f"{error}; write plain values only")
            return _FAULTY
        return value


_FAULTY = object()


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"field {next(k for k in keys if keys.count(k) > 1)!r} comes twice")
    return data


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; write it in a ..._literal field")
