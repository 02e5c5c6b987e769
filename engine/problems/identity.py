"""Identity of problems: a hash of their content.

Invariant: two problems have the same hash exactly if their statement, entry point, prelude, tests
(in any order), comparison and limits are the same. Id, reference, difficulty, tags, the file, the
order of its fields and of the items of sets and dicts do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from engine.problems.problem import CallTest, CodeTest, Problem, StdinTest, Test

_VERSION = "1"


def content_hash(problem: Problem) -> str:
    """Returns the hex SHA-256 of the task and of how answers are judged."""
    comparison, limits = problem.comparison, problem.limits
    parts = [
        _VERSION,
        problem.statement,
        problem.entry_point,
        problem.prelude,
        repr((comparison.tolerance, comparison.loose_types, comparison.checker)),
        repr((limits.seconds, limits.memory_mb)),
        *_tests("public", problem.public_tests),
        *_tests("private", problem.private_tests),
    ]
    if comparison.output:  # later than the others: a problem without it keeps its hash
        parts.append(f"output {comparison.output}")
    return _digest(parts)


def set_hash(problems: Iterable[Problem]) -> str:
    """Returns the hex SHA-256 of a set of problems, independent of their order."""
    return set_hash_of(map(content_hash, problems))


def set_hash_of(hashes: Iterable[str]) -> str:
    """Returns the same, given the content hashes of its problems."""
    return _digest(sorted(hashes))


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _tests(share: str, tests: Iterable[Test]) -> list[str]:
    return sorted(f"{share} {_test(test)}" for test in tests)


def _test(test: Test) -> str:
    match test:
        case CallTest(arguments, expected, accepted):
            return f"call {_canonical(arguments)} {_canonical(expected)} {_canonical(accepted)}"
        case StdinTest(stdin, expected, accepted):
            return f"stdin {stdin!r} {expected!r} {accepted!r}"
        case CodeTest(code):
            return f"code {code}"


def _canonical(value: Any) -> str:
    """Returns a text that is the same exactly for equal plain values of equal types."""
    kind = type(value)
    if kind is int:
        return hex(value)  # Python refuses decimal text of long integers, which is also slow
    if kind is list or kind is tuple:
        return f"{kind.__name__}[{', '.join(map(_canonical, value))}]"
    if kind is set or kind is frozenset:
        return f"{kind.__name__}{{{', '.join(sorted(map(_canonical, value)))}}}"
    if kind is dict:
        items = sorted(f"{_canonical(key)}: {_canonical(item)}" for key, item in value.items())
        return f"dict{{{', '.join(items)}}}"
    return repr(value)
