"""Tests as lists of inputs and outputs, in the layout of APPS and data sets derived from it.

    {"inputs": [...], "outputs": [...], "fn_name": "..."}

Without `fn_name` an input is the text of stdin (or its lines), an output the expected stdout.
With it, an input is the list of arguments; an output is the result, or a list with the result as
its first item: the metric of APPS counts both as right, so the other one is an accepted answer.
Dict keys that are integers as text become integers again, where the metric does that.

Printed text is compared as by the metric of APPS (eval/testing_util.py): by lines without blanks
around them and without empty ones, and words that are numerals by value (`+5`, `005`, `1e3`). If
expected outputs have decimal fractions or exponents, numbers agree within 1e-5. Unlike there, two
whole numbers are compared exactly: a tolerance would accept large ones that are off by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from engine.problems.formats.fields import RowError, plain
from engine.problems.problem import CallTest, Comparison, StdinTest

TOLERANCE = 1e-5
_FRACTION = re.compile(
    r"(?<![\w.])[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])"
)


def pairs(field: str, value: Any) -> list[tuple[Any, Any]]:
    """Returns (input, output) of each test."""
    value = value if isinstance(value, dict) else {}
    inputs, outputs = value.get("inputs"), value.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise RowError(field, value or None, "must hold the lists `inputs` and `outputs`")
    if len(inputs) != len(outputs):
        remedy = "must have as many outputs as inputs"
        raise RowError(field, f"{len(inputs)} inputs, {len(outputs)} outputs", remedy)
    if not inputs:
        raise RowError(field, value, "holds no test; a problem without tests cannot be judged")
    return list(zip(inputs, outputs, strict=True))


def stdin_test(field: str, given: Any, expected: Any) -> StdinTest:
    """Returns a test of a whole program."""
    return StdinTest(_text(field, given), _text(field, expected))


def _text(field: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise RowError(field, value, "must be a text or a list of lines, as there is no fn_name")
    return value


def call_test(field: str, given: Any, expected: Any) -> CallTest:
    """Returns a test of a function."""
    if not isinstance(given, list):
        raise RowError(field, given, "must be a list of arguments, as there is a fn_name")
    if len(given) == 1 and isinstance(given[0], dict):
        given = [_numbered(given[0])]
    expected = _numbered(expected)
    inner = isinstance(expected, list) and bool(expected)
    accepted = (_numbered(expected[0]),) if inner else ()
    for value in (given, expected):
        plain(field, value)
    return CallTest(tuple(given), expected, accepted)


def _numbered(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    try:
        return {int(key): item for key, item in value.items()}
    except ValueError:
        return value


def comparison_of_calls() -> Comparison:
    """Returns a comparison with loose types: JSON has no tuples, and does not keep 1 and 1.0
    apart as a program may."""
    return Comparison(loose_types=True)


def comparison_of_texts(outputs: Sequence[str], tolerance: float = TOLERANCE) -> Comparison:
    """Returns a comparison by lines, with a tolerance if some expected output has a decimal
    fraction or an exponent, else an exact one."""
    has_fraction = any(map(_FRACTION.search, outputs))
    return Comparison(tolerance if has_fraction else None, output="lines")
