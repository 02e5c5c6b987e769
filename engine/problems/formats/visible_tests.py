"""Which tests agents may see, where a data set does not say it.

Rule: tests whose example stands in the statement are public; if none does, the first third (at
least one, in the order of the data set); if all do, all but the last one. The only test of a
problem is both public and private.

Invariant: the same tests in the same order are always shared the same way, and both shares have
at least one test.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from engine.problems.problem import Test

AnyTest = TypeVar("AnyTest", bound=Test)
_UNSEEN = re.compile(r"(?:[\s`*:=#\"']|-{2,})+")


def share(
    tests: Sequence[AnyTest], shown: Sequence[bool]
) -> tuple[tuple[AnyTest, ...], tuple[AnyTest, ...]]:
    """(public, private) of at least one test; `shown[i]`: test i stands in the statement."""
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


def squeezed(text: str) -> str:
    """The text without blanks, quotes and rules, in lower case: how examples are recognised."""
    return _UNSEEN.sub("", text).lower()


def shows_call(statement: str, name: str, arguments: str) -> bool:
    """Whether a squeezed statement has the call `name(arguments)`."""
    return squeezed(f"{name}({arguments})") in statement


def shows_run(statement: str, stdin: str, expected: str) -> bool:
    """Whether a squeezed statement has this input and then this output under their headings."""
    given, result = squeezed(stdin), squeezed(expected)
    return bool(given and result) and f"input{given}output{result}" in statement
