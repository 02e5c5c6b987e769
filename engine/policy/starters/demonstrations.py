"""Noisy demonstrations for the warm start: first programs and repairs of wrong ones.

Underspecified problems are demonstrated as what they are: a first program guesses a reading, and
the repair of another reading is the one that the feedback shows.

Invariant: only compositions of the training split occur, so the starters never see validation or
test problems either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from traceback import extract_tb
from typing import Any

import numpy as np

from engine.environments.programs.prompts import (
    Feedback,
    Message,
    refinement_prompts,
    root_prompt,
)
from engine.events.vocabulary import TestReport, Verdict
from engine.problems.generator.compose import Split, Step, draw_steps, program, split_of
from engine.problems.generator.operations import BY_SOURCE, OPERATIONS
from engine.problems.generator.stream import GeneratedProblems
from engine.problems.generator.underspecified import Variants, make_variants
from engine.problems.problem import Problem

REFINEMENT_SHARE = 0.3
ALREADY_RIGHT_SHARE = 0.15
NO_PROGRAM_SHARE = 0.1
WRONG_STEP_SHARE = 0.4
"""Probability that each other step of a wrong program is wrong; half of it for a missing step, and
for an extra one."""
ANOTHER_TASK_SHARE = 0.2
OTHER_READING_SHARE = 0.6
"""Probability that the program to repair is another reading without further errors."""
FILE_NAME = "program.py"


@dataclass(frozen=True, slots=True)
class NoiseLevels:
    """Probability that a demonstrated step is wrong, by the step's input type."""

    list: float
    number: float
    text: float

    def of(self, step: Step) -> float:
        return getattr(self, step.operation.source)

    def scaled(self, factor: float) -> NoiseLevels:
        return NoiseLevels(self.list * factor, self.number * factor, self.text * factor)


CLEAN = NoiseLevels(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Repairs:
    """Share of repairs among the demonstrations of a family, and their noise."""

    stated: float
    """Share among those of fully stated problems."""
    underspecified: float
    noise: float = 0.0
    """Factor of the noise in demonstrated repairs; 0: every repair is right."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A conversation and the demonstrated answer."""

    messages: list[Message]
    answer: str


def demonstrations(seed: int, noise: NoiseLevels, start: int = 0) -> Iterator[Demonstration]:
    """Yields demonstrations endlessly from problem `start` on; a pure function of its input."""
    rng = np.random.default_rng([seed, 1, start])
    for _, problem in GeneratedProblems(seed).stream(Split.TRAIN, start):
        yield _demonstrate(problem, rng, noise)


def _demonstrate(
    problem: Problem, rng: np.random.Generator, noise: NoiseLevels, repairs: Repairs | None = None
) -> Demonstration:
    steps = steps_of(problem)
    answer = program(corrupt(steps, rng, noise))
    if rng.random() >= (repairs.stated if repairs else REFINEMENT_SHARE):
        return Demonstration(root_prompt(problem), answer)
    if repairs:
        answer = program(corrupt(steps, rng, noise.scaled(repairs.noise)))
    kind = rng.random()
    if kind < NO_PROGRAM_SHARE:
        parent = ""
    elif kind < NO_PROGRAM_SHARE + ALREADY_RIGHT_SHARE:
        parent = answer = problem.reference
    else:
        parent = program(wrong_version(steps, rng))
    feedback = Feedback(parent, public_reports(problem, parent))
    return Demonstration(next(refinement_prompts(problem, feedback)), answer)


def mixed_demonstrations(
    seed: int, noise: NoiseLevels, share: float, repairs: Repairs, start: int = 0
) -> Iterator[Demonstration]:
    """Yields demonstrations endlessly from problem `start` on; a pure function of its input.

    `share` is that of the underspecified problems.
    """
    rng = np.random.default_rng([seed, 2, start])
    problems = GeneratedProblems(seed, share)
    for index in count(start):
        readings = problems.readings_at(index)
        if readings is None:
            problem, split = problems.at(index)
            if split is Split.TRAIN:
                yield _demonstrate(problem, rng, noise, repairs)
            continue
        variants = make_variants(seed, index, readings)
        if split_of(variants.names) is Split.TRAIN:
            yield _demonstrate_reading(variants, rng, noise, repairs)


def _demonstrate_reading(
    variants: Variants, rng: np.random.Generator, noise: NoiseLevels, repairs: Repairs
) -> Demonstration:
    problem, meant = variants.problem(variants.meant), variants.readings[variants.meant]
    if rng.random() >= repairs.underspecified:
        return Demonstration(root_prompt(problem), program(corrupt(meant, rng, noise)))
    written = variants.readings[int(rng.integers(len(variants.readings)))]
    if written is meant or rng.random() >= OTHER_READING_SHARE:
        written = wrong_version(written, rng)
    parent = program(written)
    feedback = Feedback(parent, public_reports(problem, parent))
    answer = program(corrupt(meant, rng, noise.scaled(repairs.noise)))
    return Demonstration(next(refinement_prompts(problem, feedback)), answer)


def steps_of(problem: Problem) -> tuple[Step, ...]:
    """Returns the composition behind a generated problem, parsed from its reference."""
    by_name = {operation.name: operation for operation in OPERATIONS}
    lines = problem.reference.splitlines()[1:-1]
    return tuple(
        next(
            Step(by_name[tag], constant)
            for constant in (by_name[tag].constants or (0,))
            if f"    x = {Step(by_name[tag], constant).code()}" == line
        )
        for tag, line in zip(problem.tags, lines, strict=True)
    )


def corrupt(
    steps: tuple[Step, ...], rng: np.random.Generator, noise: NoiseLevels
) -> tuple[Step, ...]:
    """Replaces each step, with its type's probability, by another with the same input type."""
    return tuple(_other(step, rng) if rng.random() < noise.of(step) else step for step in steps)


def wrong_version(steps: tuple[Step, ...], rng: np.random.Generator) -> tuple[Step, ...]:
    """Returns a plausible wrong program: steps wrong, missing or added, or another task.

    Wrong programs must be wrong in many ways: a model trained on single slips learns only to copy
    the program and change one line, and cannot repair its own.
    """
    if rng.random() < ANOTHER_TASK_SHARE:
        return _another(steps, rng)
    wrong = int(rng.integers(len(steps)))
    written = [
        _other(step, rng) if position == wrong or rng.random() < WRONG_STEP_SHARE else step
        for position, step in enumerate(steps)
    ]
    if len(written) > 1 and rng.random() < WRONG_STEP_SHARE / 2:
        del written[int(rng.integers(len(written)))]
    if rng.random() < WRONG_STEP_SHARE / 2:
        position = int(rng.integers(len(written)))
        written.insert(position, _other(written[position], rng))
    return tuple(written)


def public_reports(problem: Problem, text: str) -> tuple[TestReport, ...]:
    """Returns the verdicts of one of our own programs on the public tests, as the sandbox formats
    them."""
    solve = _function(text) if text else None
    return tuple(_report(test.arguments[0], test.expected, solve) for test in problem.public_tests)


def _function(text: str) -> Callable[[Any], Any]:
    namespace: dict[str, Any] = {}
    exec(compile(text, FILE_NAME, "exec"), namespace)  # nosec B102
    return namespace["solve"]


def _report(value: Any, expected: Any, solve: Callable[[Any], Any] | None) -> TestReport:
    shown = repr(value), repr(expected)
    if solve is None:
        return TestReport(Verdict.NO_PROGRAM, *shown)
    try:
        actual = solve(deepcopy(value))
    except Exception as error:
        return TestReport(Verdict.RUNTIME_ERROR, *shown, error=_describe(error))
    right = type(actual) is type(expected) and actual == expected
    return TestReport(Verdict.PASSED if right else Verdict.WRONG_ANSWER, *shown, repr(actual))


def _describe(error: Exception) -> str:
    *_, frame = (f for f in extract_tb(error.__traceback__) if f.filename == FILE_NAME)
    return f"{type(error).__name__}: {error}\n  {FILE_NAME}, line {frame.lineno}, in {frame.name}"


def _another(steps: tuple[Step, ...], rng: np.random.Generator) -> tuple[Step, ...]:
    """Returns another composition with the same input type."""
    source = steps[0].operation.source
    while True:
        drawn = draw_steps(rng, int(rng.integers(1, 4)))
        if drawn[0].operation.source == source and drawn != steps:
            return drawn


def _other(step: Step, rng: np.random.Generator) -> Step:
    options = [
        operation
        for operation in BY_SOURCE[step.operation.source]
        if operation.target == step.operation.target and operation is not step.operation
    ] or [op for op in BY_SOURCE[step.operation.source] if op is not step.operation]
    operation = options[int(rng.integers(len(options)))]
    constant = int(rng.choice(operation.constants)) if operation.constants else 0
    return Step(operation, constant)
