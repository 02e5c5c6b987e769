"""Division into public and private tests, for data sets that do not define it.

Rule: tests whose example appears in the statement are public; if none does, the first third (at
least one, in the order of the data set); if all do, all but the last one. The only test of a
problem is both public and private.

Invariant: the same tests in the same order are always divided the same way, and both parts have at
least one test.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from engine.problems.problem import Test

AnyTest = TypeVar("AnyTest", bound=Test)
_IGNORED = re.compile(r"(?:[\s`*:=#\"']|-{2,})+")


def split_tests(
    tests: Sequence[AnyTest], shown: Sequence[bool]
) -> tuple[tuple[AnyTest, ...], tuple[AnyTest, ...]]:
    """Returns (public, private) tests; `shown[i]` is whether test i appears in the statement.
    Needs at least one test."""
    if len(tests) == 1:
        return tuple(tests), tuple(tests)
    chosen = list(shown)
    if not any(chosen):
        chosen = [i < max(1, len(tests) // 3) for i in range(len(tests))]
    if all(chosen):
        chosen[-1] = False
    public = tuple([test for test, is_public in zip(tests, chosen, strict=True) if is_public])
    private = tuple([test for test, is_public in zip(tests, chosen, strict=True) if not is_public])
    return public, private


def normalized(text: str) -> str:
    """Returns the text in lower case without whitespace, quotes and markup, for the recognition of
    examples."""
    return _IGNORED.sub("", text).lower()


def shows_call(statement: str, name: str, arguments: str) -> bool:
    """Returns whether a normalized statement contains the call `name(arguments)`."""
    return normalized(f"{name}({arguments})") in statement


def shows_run(statement: str, stdin: str, expected: str) -> bool:
    """Returns whether a normalized statement contains this input and then this output, under their
    headings."""
    given, result = normalized(stdin), normalized(expected)
    return bool(given and result) and f"input{given}output{result}" in statement
