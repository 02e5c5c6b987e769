"""Test cases: what the sandbox runs, how results are compared, and what limits apply.

Invariant: all values in tests are plain Python literals (`engine.sandbox.guest.literals`). No
statement and no data set is known here: `engine.problems.problem.Problem` is a `JudgedTask`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Plain:
    """Base class that is pickled as its constructor's arguments. By default a dataclass looks up
    all its fields for every object, which cost more than the content of a problem's tests."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])


@dataclass(frozen=True, slots=True)
class CallTest(Plain):
    """Test that calls the entry point with `arguments`; the result must equal `expected`.

    Equality is exact in type as well as in value (True is not 1, and 1 is not 1.0), unless the
    problem's `Comparison` allows more.
    """

    arguments: tuple[Any, ...]
    expected: Any
    accepted: tuple[Any, ...] = ()
    """Other results that count as right."""


@dataclass(frozen=True, slots=True)
class StdinTest(Plain):
    """Test that runs the program with `stdin`; its output must equal `expected`, line by line."""

    stdin: str
    expected: str
    accepted: tuple[str, ...] = ()
    """Other outputs that count as right."""


@dataclass(frozen=True, slots=True)
class CodeTest(Plain):
    """Python test code that uses the entry point and raises, as `assert` does, if it is not right.

    It runs in a separate judge process after the problem's `prelude`, in a namespace where both
    `candidate` and the entry point's own name are a proxy: a call sends plain values to the
    program's process, which returns a plain value or the class of an exception.
    """

    code: str


Test = CallTest | StdinTest | CodeTest


@dataclass(frozen=True, slots=True)
class Comparison(Plain):
    """Comparison of a returned value or a printed text with the expected one."""

    tolerance: float | None = None
    """Absolute tolerance of floats, or relative to the expected value; None: exact."""
    loose_types: bool = False
    """1 equals 1.0 and True, as by Python's `==`, and a tuple equals a list of equal items, as data
    sets in JSON need."""
    checker: str = ""
    """Python that defines `check(given, expected, actual) -> bool`, run in a separate sandboxed
    process; `given` is the tuple of arguments, or the text of stdin. Empty: no checker."""
    output: str = ""
    """How a printed text is compared (`OUTPUTS`)."""


OUTPUTS = ("", "lines", "words", "decimals")
"""Comparisons of printed texts: of lines, but for blanks at their ends; as APPS, of lines without
blanks around them and without empty ones, numerals by value; as CodeContests, of words without
case, numbers within the tolerance; as LiveCodeBench, of lines without blanks around them, or of
their words as exact decimals."""


@dataclass(frozen=True, slots=True)
class Limits(Plain):
    """Limits of a program on one test; None keeps the sandbox's setting."""

    MAX_SECONDS: ClassVar = 3600.0
    MAX_MEMORY_MB: ClassVar = 1 << 20

    seconds: float | None = None
    memory_mb: int | None = None


EXACT, NO_LIMITS = Comparison(), Limits()


class JudgedTask(Protocol):
    """What a verdict on a program depends on: tests, entry point, comparison and limits."""

    @property
    def entry_point(self) -> str:
        """Function `name` or method `Class.name`; empty for a program that reads stdin."""
        ...

    @property
    def public_tests(self) -> tuple[Test, ...]: ...

    @property
    def private_tests(self) -> tuple[Test, ...]: ...

    @property
    def prelude(self) -> str:
        """Code that runs before the program and before every code test."""
        ...

    @property
    def comparison(self) -> Comparison: ...

    @property
    def limits(self) -> Limits: ...


@dataclass(frozen=True, slots=True)
class TaskTests:
    """The fields of a `JudgedTask`, and nothing else."""

    entry_point: str
    public_tests: tuple[Test, ...]
    private_tests: tuple[Test, ...]
    prelude: str = ""
    comparison: Comparison = EXACT
    limits: Limits = NO_LIMITS

    @classmethod
    def of(cls, task: JudgedTask) -> TaskTests:
        """Returns all that a verdict depends on, without the task's text and labels."""
        return cls(*[getattr(task, name) for name in cls.__match_args__])
