"""Programming problem: its statement, tests, comparison and limits.

Invariant: a `Problem` has at least one public and one private test, and all values in its tests
are plain Python literals. It defines what to run and what to compare; it runs nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.sandbox.cases import (
    EXACT,
    NO_LIMITS,
    CallTest,
    CodeTest,
    Comparison,
    Limits,
    Plain,
    StdinTest,
    Test,
)

__all__ = ["CallTest", "CodeTest", "Comparison", "Limits", "Plain", "Problem", "StdinTest", "Test"]


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """Problem: a statement, the entry point of the requested program, and its tests.

    Public tests may be shown to agents and guide the search at evaluation; private tests never
    enter a prompt. Training scores a program on both.
    """

    id: str
    statement: str
    entry_point: str
    """A function `name`, or a method `Class.name` of an object constructed without arguments. Empty
    for a program that reads stdin and prints."""
    public_tests: tuple[Test, ...]
    private_tests: tuple[Test, ...]
    reference: str = ""
    """A program that passes every test, if one is known."""
    difficulty: int = 0
    """Number of composed operations for generated problems; 0 if unknown."""
    tags: tuple[str, ...] = field(default=())
    prelude: str = ""
    """Code that runs before the program and before every code test: imports and helpers that the
    statement promises."""
    comparison: Comparison = EXACT
    limits: Limits = NO_LIMITS
    other_references: tuple[str, ...] = ()
    """Further programs of which the data set says that they pass; one takes the reference's place
    if that fails (`engine.problems.check`)."""
