"""Generated problems of one to three operations, each a pure function of (version, seed, index).

Invariants:
- `make_problem(seed, index)` always returns the same problem under one VERSION.
- The split of a problem depends only on the names of its operations, so no composition of the
  validation or test split occurs in training.
- Every step matters: leaving any one out changes the result of at least one test.
- A problem whose reference solution, run as a program, fails one of its tests is never returned.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from engine.problems.generator.operations import BY_SOURCE, LIST, NUMBER, TEXT, Operation
from engine.problems.problem import CallTest, Problem

VERSION = 1
PUBLIC_TESTS, PRIVATE_TESTS = 3, 5
LARGEST_VALUE = 10**6
DIFFICULTY_SHARES = (0.25, 0.40, 0.35)
WORDS = (
    "apple", "Bird", "cloud", "Dune", "ember", "Frost", "grove", "Hill", "iris", "Jade", "kite",
    "Leaf", "moss", "Night", "oak", "Pine", "quill", "River", "stone", "Tree", "umbra", "Vale",
)  # fmt: skip
KIND_WORDS = {LIST: "a list of integers", NUMBER: "an integer", TEXT: "a string"}


class ReferenceFailed(RuntimeError):
    """Raised if a generated problem's own solution fails one of its tests."""


class Split(StrEnum):
    """Part of the data to which a composition belongs."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with its constant."""

    operation: Operation
    constant: int

    def apply(self, value: Any) -> Any:
        return self.operation.apply(value, self.constant)

    def code(self) -> str:
        return self.operation.code.format(k=self.constant)


def make_problem(seed: int, index: int) -> tuple[Problem, Split]:
    """Returns problem number `index` of the stream of `seed`, and its split."""
    rng = np.random.default_rng([VERSION, seed, index])
    # The length is drawn once: rejected compositions must not shift the shares of difficulty.
    length = int(rng.choice(len(DIFFICULTY_SHARES), p=DIFFICULTY_SHARES)) + 1
    while True:
        steps = draw_steps(rng, length)
        inputs = [
            draw_input(rng, steps[0].operation.source) for _ in range(PUBLIC_TESTS + PRIVATE_TESTS)
        ]
        outputs = [run_steps(steps, value) for value in inputs]
        if _is_sound(steps, inputs, outputs):
            break
    tests = [CallTest((value,), output) for value, output in zip(inputs, outputs, strict=True)]
    problem = Problem(
        id=f"generated-{VERSION}-{seed}-{index}",
        statement=statement(steps, rng),
        entry_point="solve",
        public_tests=tuple(tests[:PUBLIC_TESTS]),
        private_tests=tuple(tests[PUBLIC_TESTS:]),
        reference=program(steps),
        difficulty=len(steps),
        tags=tuple(step.operation.name for step in steps),
    )
    run_reference(problem)
    return problem, split_of(problem.tags)


def split_of(structure: tuple[str, ...]) -> Split:
    """Returns the split of a composition by the names of its operations: 80 / 10 / 10 %."""
    digest = hashlib.sha256("+".join(structure).encode()).digest()
    share = int.from_bytes(digest[:4], "big") % 10
    return Split.TEST if share == 0 else Split.VALIDATION if share == 1 else Split.TRAIN


def draw_steps(rng: np.random.Generator, length: int) -> tuple[Step, ...]:
    """Samples operations whose types fit, none twice in a row."""
    kind = str(rng.choice([LIST, LIST, NUMBER, TEXT, TEXT]))
    steps: list[Step] = []
    while len(steps) < length:
        options = BY_SOURCE[kind]
        operation = options[int(rng.integers(len(options)))]
        if steps and operation is steps[-1].operation:
            continue
        constant = int(rng.choice(operation.constants)) if operation.constants else 0
        steps.append(Step(operation, constant))
        kind = operation.target
    return tuple(steps)


def draw_input(rng: np.random.Generator, kind: str) -> Any:
    """Returns a random value of one type."""
    if kind == NUMBER:
        return int(rng.integers(-60, 200))
    if kind == TEXT:
        return " ".join(
            WORDS[int(i)] for i in rng.integers(len(WORDS), size=int(rng.integers(1, 4)))
        )
    return [int(v) for v in rng.integers(-9, 15, size=int(rng.integers(2, 8)))]


def run_steps(steps: tuple[Step, ...], value: Any) -> Any:
    """Returns the result of the composition for one input."""
    for step in steps:
        value = step.apply(value)
    return value


def statement(steps: tuple[Step, ...], rng: np.random.Generator) -> str:
    """Returns the task in words; the wording of every step is sampled."""
    phrases = [
        step.operation.phrases[int(rng.integers(len(step.operation.phrases)))].format(
            k=step.constant
        )
        for step in steps
    ]
    return (
        f"Write solve(x) for {KIND_WORDS[steps[0].operation.source]} x: {', then '.join(phrases)}."
    )


def program(steps: tuple[Step, ...]) -> str:
    """Returns the reference solution: one assignment per step."""
    body = "".join(f"    x = {step.code()}\n" for step in steps)
    return f"def solve(x):\n{body}    return x\n"


def run_reference(problem: Problem) -> None:
    """Runs the reference program, which is ours and not a model's, on every test.

    Raises:
        ReferenceFailed: an operation's `code` and `apply` disagree.
    """
    namespace: dict[str, Any] = {}
    exec(compile(problem.reference, problem.id, "exec"), namespace)  # nosec B102
    for test in (*problem.public_tests, *problem.private_tests):
        assert isinstance(test, CallTest)
        actual = namespace[problem.entry_point](*copy.deepcopy(test.arguments))
        if type(actual) is not type(test.expected) or actual != test.expected:
            raise ReferenceFailed(
                f"{problem.id}: the reference gives {actual!r} for {test.arguments!r}, expected is "
                f"{test.expected!r}; mend one of the operations {', '.join(problem.tags)}"
            )


def _is_sound(steps: tuple[Step, ...], inputs: list[Any], outputs: list[Any]) -> bool:
    if len({repr(output) for output in outputs[:PUBLIC_TESTS]}) < 2:
        return False
    if any(too_large(output) for output in outputs):
        return False
    return all(_matters(steps, position, inputs, outputs) for position in range(len(steps)))


def _matters(steps: tuple[Step, ...], position: int, inputs: list[Any], outputs: list[Any]) -> bool:
    """Returns whether leaving one step out changes a public test, so that they guide a search."""
    if steps[position].operation.source != steps[position].operation.target:
        return True
    shortened = steps[:position] + steps[position + 1 :]
    return any(
        run_steps(shortened, value) != output
        for value, output in zip(inputs[:PUBLIC_TESTS], outputs[:PUBLIC_TESTS], strict=True)
    )


def too_large(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) > LARGEST_VALUE
    return len(value) > 60 or (isinstance(value, list) and any(map(too_large, value)))
