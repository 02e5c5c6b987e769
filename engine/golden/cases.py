"""Golden cases: worked numbers, run through the very functions that training uses.

A file holds `{"cases": [...]}`; a case has name, kind, inputs, expected, tolerance, and optionally
status and notes. The expected value is a number, a Boolean, a string, or lists and objects of
these; each of its parts must match within the tolerance. Statistical kinds sample from a fixed
seed, often enough that their own error is small compared with the tolerance.

Invariants:
- Nothing is computed here that training computes elsewhere; a kind only translates.
- A case passes only if something was compared: a case that cannot be read, tolerates everything or
  has an input that its kind does not read fails; an empty object matches only an empty one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path
from typing import Any

from engine.config.errors import printable, shown
from engine.golden.kinds import KINDS


@dataclass(frozen=True)
class Deviation:
    """One part of an expected value that does not match."""

    where: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.where or 'value'}: expected {self.expected!r}, got {self.actual!r}"


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING = _Missing()


def deviations(expected: Any, actual: Any, tolerance: float, where: str = "") -> list[Deviation]:
    """Returns every part of `expected` that `actual` does not match; other parts are ignored."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or (actual and not expected):
            return [Deviation(where, expected, actual)]
        return [
            deviation
            for key, part in expected.items()
            for deviation in deviations(
                part, actual.get(key, _MISSING), tolerance, f"{where}.{key}".strip(".")
            )
        ]
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return [Deviation(where, expected, actual)]
        return [
            deviation
            for index, part in enumerate(expected)
            for deviation in deviations(part, actual[index], tolerance, f"{where}[{index}]")
        ]
    return [] if _matches(expected, actual, tolerance) else [Deviation(where, expected, actual)]


def _matches(expected: Any, actual: Any, tolerance: float) -> bool:
    if actual == inf and (expected is None or str(expected).lower() in ("inf", "infinity")):
        return True  # JSON has no infinity of its own
    if isinstance(expected, bool) or isinstance(actual, bool) or not _is_number(expected):
        return type(expected) is type(actual) and expected == actual
    if not _is_number(actual) or isnan(actual):
        return False
    try:
        return expected == actual or abs(expected - actual) <= tolerance
    except OverflowError:  # an integer beyond all floats
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def run_case(case: dict[str, Any]) -> list[str]:
    """Returns what is wrong with one case, in sentences; empty if it passes."""
    kind = case.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return [f"unknown kind {kind!r}; choose one of {', '.join(sorted(KINDS))}"]
    missing = [key for key in ("inputs", "expected", "tolerance") if key not in case]
    if missing:
        return [f"the case lacks {', '.join(missing)}"]
    if errors := _case_errors(case) or KINDS[kind].input_errors(case["inputs"]):
        return errors
    try:
        actual = KINDS[kind].run(case)
    except Exception as error:  # a case must never hide those after it
        return [f"{type(error).__name__}: {error}"]
    mismatches = deviations(case["expected"], actual, case["tolerance"])
    return [str(deviation) for deviation in mismatches]


def _case_errors(case: dict[str, Any]) -> list[str]:
    """Returns why a case cannot distinguish right from wrong; empty if it can."""
    errors = []
    tolerance = case["tolerance"]
    if type(tolerance) not in (int, float) or not 0 <= tolerance <= sys.float_info.max:
        errors.append(f"tolerance = {shown(tolerance)!r}: must be a finite number, 0 or more")
    if not isinstance(case["inputs"], dict):
        errors.append(f"inputs = {shown(case['inputs'])!r}: must be an object")
    return errors


def run_file(path: Path | str) -> list[tuple[dict[str, Any], list[str]]]:
    """Returns every case of a file with what is wrong with it.

    Raises:
        OSError, ValueError: the file cannot be read, or holds no list of cases.
    """
    try:
        data = json.loads(Path(path).read_text("utf-8-sig"))
    except RecursionError:
        raise ValueError("is nested too deeply to be a file of cases") from None
    cases = data.get("cases") if isinstance(data, dict) else data
    if (
        not isinstance(cases, list)
        or not cases
        or not all(isinstance(case, dict) for case in cases)
    ):
        raise ValueError('no cases: expected {"cases": [{"name": ..., "kind": ...}, ...]}')
    return [(case, run_case(case)) for case in cases]


def check_file(path: Path, as_json: bool = False) -> int:
    """Runs a file's cases and prints each deviation and a last line `N passed, M failed`.

    With `as_json`, prints one JSON object instead. Returns 0 if all pass, 1 if some fail, 2 if the
    file cannot be read.
    """
    try:
        results = run_file(path)
    except (OSError, ValueError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    failed = [(case, errors) for case, errors in results if errors]
    passed = len(results) - len(failed)
    failures = [
        {"name": shown(case.get("name")), "kind": shown(case.get("kind")), "wrong": errors}
        for case, errors in failed
    ]
    if as_json:
        print(json.dumps({"passed": passed, "failed": len(failed), "cases": failures}))
        return 1 if failed else 0
    for case, errors in failed:
        for line in errors:
            print(printable(f"{case.get('name', '(unnamed)')} ({case.get('kind')}): {line}"))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0
