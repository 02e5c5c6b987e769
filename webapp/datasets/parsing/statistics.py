"""Statistics of a set of problems. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine.problems.problem import CallTest, CodeTest, Problem, Test

_MOST_TAGS = 20
_SCRIPT_SAMPLE = 400


def statistics(problems: Sequence[Problem], left_out: int) -> dict[str, Any]:
    """Returns counts, and the `spread` of lengths (characters) and of tests per problem.

    `languages` counts problems by the script of their statement ("latin", "cjk", ...), `programs`
    by the language of their reference.
    """
    references = [one.reference for one in problems if one.reference.strip()]
    return {
        "problems": len(problems),
        "left_out": left_out,
        "with_reference": len(references),
        "tests": sum(map(_tests, problems)),
        "kinds": _counted(_kind(test) for one in problems for test in _all_tests(one)),
        "asks": _counted(_entry_point_kind(one) for one in problems),  # codespell:ignore
        "languages": _counted(script(one.statement) for one in problems),
        "programs": {"python": len(references)} if references else {},
        "tags": dict(Counter(t for one in problems for t in one.tags).most_common(_MOST_TAGS)),
        "difficulties": {
            str(level): count
            for level, count in sorted(Counter(one.difficulty for one in problems).items())
        },
        "statement_chars": spread([len(one.statement) for one in problems]),
        "reference_chars": spread(list(map(len, references))),
        "public_tests": spread([len(one.public_tests) for one in problems]),
        "private_tests": spread([len(one.private_tests) for one in problems]),
    }


def spread(values: Sequence[int]) -> dict[str, float] | None:
    """Returns minimum, median, mean, 95th percentile and maximum; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "least": ordered[0],
        "median": (ordered[last // 2] + ordered[(last + 1) // 2]) / 2,
        "mean": round(sum(ordered) / len(ordered), 2),
        "p95": ordered[round(0.95 * last)],
        "greatest": ordered[-1],
    }


def script(text: str) -> str:
    """Returns the script of most letters at a text's beginning; "none" without letters."""
    letters = (char for char in text[:_SCRIPT_SAMPLE] if char.isalpha())
    names = Counter(unicodedata.name(char, "UNKNOWN").split()[0].lower() for char in letters)
    return names.most_common(1)[0][0] if names else "none"


def _all_tests(problem: Problem) -> tuple[Test, ...]:
    return (*problem.public_tests, *problem.private_tests)


def _tests(problem: Problem) -> int:
    return len(_all_tests(problem))


def _kind(test: Test) -> str:
    if isinstance(test, CallTest):
        return "calls"
    return "code" if isinstance(test, CodeTest) else "stdin"


def _entry_point_kind(problem: Problem) -> str:
    if not problem.entry_point:
        return "program"
    return "method" if "." in problem.entry_point else "function"


def _counted(values: Any) -> dict[str, int]:
    return dict(Counter(values).most_common())
