"""One programming problem.

Invariant: a `Problem` has an entry point and at least one public and one private test, and
all values in its tests are plain Python literals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CallTest:
    """Call the entry point with `arguments`; the returned value must equal `expected`.

    Equality is exact in type as well as in value: True is not 1, and 1 is not 1.0.
    """

    arguments: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A statement, the function that is asked for, and its tests.

    Public tests may be shown to agents and guide the search at evaluation; private tests never
    enter a prompt. Training scores a program on both.
    """

    id: str
    statement: str
    entry_point: str
    public_tests: tuple[CallTest, ...]
    private_tests: tuple[CallTest, ...]
    reference: str = ""
    """A program that passes every test, if one is known."""
    difficulty: int = 0
    """Number of composed steps for generated problems; 0 where unknown."""
    tags: tuple[str, ...] = field(default=())
