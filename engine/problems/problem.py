"""One programming problem: what is asked, and how an answer is judged.

Invariant: a `Problem` has at least one public and one private test, and all values in its tests
are plain Python literals. It names what to run and what to compare; it runs nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar


class Plain:
    """Passes to another process as the arguments that it was made from. A dataclass looks all its
    fields up anew for every object, which for a problem's tests cost more than what they say."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])


@dataclass(frozen=True, slots=True)
class CallTest(Plain):
    """Call the entry point with `arguments`; what it returns must equal `expected`.

    Equality is exact in type as well as in value (True is not 1, and 1 is not 1.0), unless the
    problem's `Comparison` allows more.
    """

    arguments: tuple[Any, ...]
    expected: Any
    accepted: tuple[Any, ...] = ()
    """Other answers that count as right."""


@dataclass(frozen=True, slots=True)
class StdinTest(Plain):
    """Run the program with `stdin`; what it prints must equal `expected`, line by line."""

    stdin: str
    expected: str
    accepted: tuple[str, ...] = ()
    """Other outputs that count as right."""


@dataclass(frozen=True, slots=True)
class CodeTest(Plain):
    """Python that uses the entry point and raises, as `assert` does, if it is not right.

    It is run in a judge process of its own after the problem's `prelude`, in a namespace where
    both `candidate` and the entry point's own name are a proxy: a call goes to the program's
    process with plain values, and a plain value, or the class of an exception, comes back.
    """

    code: str


Test = CallTest | StdinTest | CodeTest


@dataclass(frozen=True, slots=True)
class Comparison(Plain):
    """How a returned value or a printed text is compared with what was expected."""

    tolerance: float | None = None
    """Floats agree within this, absolute or relative to the expected; None: exactly."""
    loose_types: bool = False
    """1 equals 1.0, and a tuple equals a list of equal items, as data sets in JSON need."""
    checker: str = ""
    """Python that defines `check(given, expected, actual) -> bool`, run in the sandbox in a
    process of its own; `given` is the tuple of arguments, or the text of stdin. Empty: none."""


@dataclass(frozen=True, slots=True)
class Limits(Plain):
    """What a program may take on one test; None keeps the sandbox's setting."""

    MOST_SECONDS: ClassVar = 3600.0
    MOST_MEMORY_MB: ClassVar = 1 << 20

    seconds: float | None = None
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """A statement, the program that is asked for, and its tests.

    Public tests may be shown to agents and guide the search at evaluation; private tests never
    enter a prompt. Training scores a program on both.
    """

    id: str
    statement: str
    entry_point: str
    """A function `name`, or a method `Class.name` of an object made without arguments. Empty for
    a program that reads stdin and prints."""
    public_tests: tuple[Test, ...]
    private_tests: tuple[Test, ...]
    reference: str = ""
    """A program that passes every test, if one is known."""
    difficulty: int = 0
    """Number of composed steps for generated problems; 0 where unknown."""
    tags: tuple[str, ...] = field(default=())
    prelude: str = ""
    """Code that stands before the program and before every code test: imports and helpers that
    the statement promises."""
    comparison: Comparison = Comparison()
    limits: Limits = Limits()
