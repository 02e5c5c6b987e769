"""Noisy demonstrations for the warm start: first programs and repairs of wrong ones.

Invariant: only compositions of the training split occur, so that validation and test problems
stay unseen by the starters too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.events import TestReport, Verdict
from engine.policy.prompts import Feedback, Message, refinement_prompts, root_prompt
from engine.problems.generator.compose import (
    GeneratedProblems,
    Split,
    Step,
    program,
    run_steps,
)
from engine.problems.generator.operations import BY_SOURCE, OPERATIONS
from engine.problems.problem import Problem

REFINEMENT_SHARE = 0.3
ALREADY_RIGHT_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class NoiseLevels:
    """Probability that a demonstrated step is wrong, by the type that the step reads."""

    list: float
    number: float
    text: float

    def of(self, step: Step) -> float:
        return getattr(self, step.operation.source)


CLEAN = NoiseLevels(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A conversation and the answer that is shown for it."""

    messages: list[Message]
    answer: str


def demonstrations(seed: int, noise: NoiseLevels, clean: int = 0) -> Iterator[Demonstration]:
    """Endless stream, the first `clean` of them without noise; a pure function of its arguments."""
    rng = np.random.default_rng([seed, 1])
    problems = GeneratedProblems(seed).stream(Split.TRAIN)
    for number, (_, problem) in enumerate(problems):
        yield _demonstrate(problem, rng, CLEAN if number < clean else noise)


def _demonstrate(problem: Problem, rng: np.random.Generator, noise: NoiseLevels) -> Demonstration:
    steps = steps_of(problem)
    answer = program(corrupt(steps, rng, noise))
    if rng.random() >= REFINEMENT_SHARE:
        return Demonstration(root_prompt(problem), answer)
    if rng.random() < ALREADY_RIGHT_SHARE:
        parent, answer = steps, program(steps)
    else:
        parent = wrong_version(steps, rng)
    feedback = Feedback(program(parent), public_reports(problem, parent))
    return Demonstration(next(refinement_prompts(problem, feedback)), answer)


def steps_of(problem: Problem) -> tuple[Step, ...]:
    """The composition behind a generated problem, read back from its reference."""
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
    """Each step is replaced, with its type's probability, by another that reads the same type."""
    return tuple(_other(step, rng) if rng.random() < noise.of(step) else step for step in steps)


def wrong_version(steps: tuple[Step, ...], rng: np.random.Generator) -> tuple[Step, ...]:
    """The composition with one or more steps wrong."""
    wrong = int(rng.integers(len(steps)))
    return tuple(
        _other(step, rng) if position == wrong or rng.random() < 0.25 else step
        for position, step in enumerate(steps)
    )


def public_reports(problem: Problem, steps: tuple[Step, ...]) -> tuple[TestReport, ...]:
    """The verdicts that a composition gets on the public tests, without running its program."""
    return tuple(_report(test.arguments[0], test.expected, steps) for test in problem.public_tests)


def _report(value: object, expected: object, steps: tuple[Step, ...]) -> TestReport:
    try:
        actual = run_steps(steps, value)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        return TestReport(Verdict.RUNTIME_ERROR, repr(value), repr(expected), error=reason)
    right = type(actual) is type(expected) and actual == expected
    verdict = Verdict.PASSED if right else Verdict.WRONG_ANSWER
    return TestReport(verdict, repr(value), repr(expected), repr(actual))


def _other(step: Step, rng: np.random.Generator) -> Step:
    options = [
        operation
        for operation in BY_SOURCE[step.operation.source]
        if operation.target == step.operation.target and operation is not step.operation
    ] or [op for op in BY_SOURCE[step.operation.source] if op is not step.operation]
    operation = options[int(rng.integers(len(options)))]
    constant = int(rng.choice(operation.constants)) if operation.constants else 0
    return Step(operation, constant)
