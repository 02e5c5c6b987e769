"""Generated problems whose statement has k readings, each a pure function of (version, seed, index,
k).

One to three steps are open operations (`readings`), and each combination of theirs is a reading of
the statement; the one that the tests mean is drawn last, uniformly, so neither statement nor inputs
depend on it. Invariants:

- All readings of a statement differ from each other on the public and on the private tests.
- What a refinement prompt shows of a wrong reading (its first `SHOWN_FAILURES` failing public
  tests) leaves one reading of the steps that it got wrong.
- The split of a problem depends only on the names of its operations, never on the reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from engine.config.problems import READING_COUNTS
from engine.problems.generator.compose import (
    DIFFICULTY_SHARES,
    KIND_WORDS,
    PRIVATE_TESTS,
    PUBLIC_TESTS,
    WORDS,
    Split,
    Step,
    program,
    run_reference,
    run_steps,
    split_of,
    statement,
    too_large,
)
from engine.problems.generator.operations import BY_SOURCE, LIST, NUMBER, TEXT
from engine.problems.generator.readings import OPEN_BY_SOURCE, OpenOperation
from engine.problems.problem import CallTest, Problem

UNDERSPECIFIED_VERSION = 1
_FAMILY = "underspecified"
"""First part of the ids."""
_ID = re.compile(rf"{_FAMILY}-\d+-\d+-\d+-(?P<readings>\d{{1,2}})", re.ASCII)
"""Version, seed, index and number of readings (`make_variants`)."""
SHOWN_FAILURES = 2
"""Failing tests in a refinement prompt (`engine.environments.programs.prompts.FEEDBACK_TESTS`)."""
OPEN_SHARE = 0.5
"""Probability that a step is drawn from the open operations."""
INPUT_DRAWS = 8
"""Sets of inputs that are tried for one composition before another one is drawn."""

Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Variants:
    """All readings of one statement, with the inputs of its tests."""

    id: str
    statement: str
    names: tuple[str, ...]
    """Names of the operations, in order."""
    readings: tuple[Steps, ...]
    inputs: tuple[Any, ...]
    meant: int
    """Index of the reading that the tests of the problem mean."""

    def problem(self, reading: int) -> Problem:
        """Returns the problem whose tests mean this reading."""
        steps = self.readings[reading]
        tests = [CallTest((value,), run_steps(steps, value)) for value in self.inputs]
        return Problem(
            id=self.id,
            statement=self.statement,
            entry_point="solve",
            public_tests=tuple(tests[:PUBLIC_TESTS]),
            private_tests=tuple(tests[PUBLIC_TESTS:]),
            reference=program(steps),
            difficulty=len(steps),
            tags=(*self.names, f"readings-{len(self.readings)}"),
        )


def make_underspecified(seed: int, index: int, readings: int) -> tuple[Problem, Split]:
    """Returns problem number `index` with that many readings, and its split.

    Raises:
        ValueError: `readings` is not one of `READING_COUNTS`.
    """
    variants = make_variants(seed, index, readings)
    problem = variants.problem(variants.meant)
    run_reference(problem)
    return problem, split_of(variants.names)


def make_variants(seed: int, index: int, readings: int) -> Variants:
    """Returns the same problem with all its readings. Raises ValueError as above."""
    if readings not in READING_COUNTS:
        raise ValueError(
            f"readings = {readings}: a statement has {', '.join(map(str, READING_COUNTS))} readings"
        )
    rng = np.random.default_rng([UNDERSPECIFIED_VERSION, seed, index, readings])
    while True:
        versions = _draw_readings(rng, readings)
        inputs = _draw_inputs(rng, versions)
        if inputs is not None:
            break
    return Variants(
        id=f"{_FAMILY}-{UNDERSPECIFIED_VERSION}-{seed}-{index}-{readings}",
        statement=statement(versions[0], rng),
        names=tuple(step.operation.name for step in versions[0]),
        readings=versions,
        inputs=inputs,
        meant=int(rng.integers(readings)),
    )


def readings_of(problem_id: str) -> int | None:
    """Returns the number of readings of a problem of this family by its id; None for any other."""
    ours = _ID.fullmatch(problem_id)  # ids of other data sets may begin with the same word
    return int(ours["readings"]) if ours else None


def family_of(problem_id: str) -> str:
    """Returns the family of a problem by its id: `underspecified`, or `stated` for any other."""
    return _FAMILY if readings_of(problem_id) is not None else "stated"


def programs_of(problem_id: str) -> frozenset[str]:
    """Returns the references of all readings of a problem, by its id; none for one that is fully
    stated."""
    if readings_of(problem_id) is None:
        return frozenset()
    _, _, seed, index, readings = problem_id.split("-")
    variants = make_variants(int(seed), int(index), int(readings))
    return frozenset(map(program, variants.readings))


def _draw_readings(rng: np.random.Generator, readings: int) -> tuple[Steps, ...]:
    """Returns every reading of a drawn composition that has this number of them."""
    while True:
        length = int(rng.choice(len(DIFFICULTY_SHARES), p=DIFFICULTY_SHARES)) + 1
        options = _draw_options(rng, length)
        if np.prod([len(steps) for steps in options]) == readings:
            return tuple(product(*options))


def _draw_options(rng: np.random.Generator, length: int) -> list[tuple[Step, ...]]:
    """Returns the readings of each step; those of a fully stated operation are one."""
    kind = str(rng.choice(list(KIND_WORDS)))
    options: list[tuple[Step, ...]] = []
    while len(options) < length:
        choices: tuple[Any, ...] = BY_SOURCE[kind]
        if rng.random() < OPEN_SHARE:
            choices = OPEN_BY_SOURCE[kind]
        chosen = choices[int(rng.integers(len(choices)))]
        if options and chosen.name == options[-1][0].operation.name:
            continue
        constant = int(rng.choice(chosen.constants)) if chosen.constants else 0
        operations = chosen.readings if isinstance(chosen, OpenOperation) else (chosen,)
        options.append(tuple(Step(operation, constant) for operation in operations))
        kind = chosen.target
    return options


def _draw_inputs(rng: np.random.Generator, readings: tuple[Steps, ...]) -> tuple[Any, ...] | None:
    """Returns inputs whose public and private tests distinguish all readings; None if several draws
    gave none."""
    constants = tuple(step.constant for step in readings[0])
    for _ in range(INPUT_DRAWS):
        inputs: list[Any] = []
        columns: list[list[Any]] = []
        for _ in range(3 * (PUBLIC_TESTS + PRIVATE_TESTS)):
            value = draw_edge_input(rng, readings[0][0].operation.source, constants)
            results = _results(readings, value)
            if results is not None and value not in inputs:
                inputs.append(value)
                columns.append(results)
            if len(inputs) == PUBLIC_TESTS + PRIVATE_TESTS:
                break
        else:
            continue
        if _is_sound(readings, inputs, columns):
            return tuple(inputs)
    return None


def draw_edge_input(rng: np.random.Generator, kind: str, constants: tuple[int, ...] = ()) -> Any:
    """Returns a short random value in which ties, bounds and empty values are frequent."""
    if kind == NUMBER:
        return int(rng.integers(-60, 60))
    if kind == TEXT:
        size = int(rng.integers(1, 5)) if rng.random() < 0.95 else 0
        return " ".join(WORDS[int(i)] for i in rng.integers(len(WORDS), size=size))
    assert kind == LIST
    bounds = (0, *(value - less for value in constants for less in (0, 1)))
    values: list[int] = []
    for _ in range(int(rng.integers(1, 7)) if rng.random() < 0.85 else 0):
        drawn = rng.random()
        if drawn < 0.25:
            values.append(bounds[int(rng.integers(len(bounds)))])
        elif drawn < 0.5 and values:
            values.append(int(rng.choice((1, -1))) * values[int(rng.integers(len(values)))])
        else:
            values.append(int(rng.integers(-9, 10)))
    return values


def _results(readings: tuple[Steps, ...], value: Any) -> list[Any] | None:
    """Returns the result of every reading; None if one of them has none, or one too large."""
    try:
        results = [run_steps(steps, value) for steps in readings]
    except (IndexError, ValueError):
        return None
    return None if any(map(too_large, results)) else results


def _is_sound(readings: tuple[Steps, ...], inputs: list[Any], columns: list[list[Any]]) -> bool:
    shown = [[repr(result) for result in column] for column in columns]
    rows = list(zip(*shown, strict=True))
    public = [row[:PUBLIC_TESTS] for row in rows]
    private = [row[PUBLIC_TESTS:] for row in rows]
    if len(set(public)) < len(rows) or len(set(private)) < len(rows):
        return False
    if any(len(set(row)) < 2 for row in public):
        return False
    if not _feedback_identifies(readings, public):
        return False
    return all(
        _matters(steps, position, inputs[:PUBLIC_TESTS], row)
        for steps, row in zip(readings, public, strict=True)
        for position in range(len(steps))
    )


def _matters(steps: Steps, position: int, inputs: list[Any], results: tuple[str, ...]) -> bool:
    """Returns whether leaving one step out changes a public test, or ends it with an error."""
    operation = steps[position].operation
    if operation.source != operation.target:
        return True
    shortened = steps[:position] + steps[position + 1 :]
    try:
        return any(
            repr(run_steps(shortened, value)) != result
            for value, result in zip(inputs, results, strict=True)
        )
    except (IndexError, ValueError):
        return True


def _feedback_identifies(readings: tuple[Steps, ...], public: list[tuple[str, ...]]) -> bool:
    """Returns whether the shown failures of each wrong reading leave one reading of the steps that
    it got wrong, whichever reading is meant."""
    for meant, wrong in combinations(range(len(readings)), 2):
        failing = [t for t in range(PUBLIC_TESTS) if public[meant][t] != public[wrong][t]]
        first = failing[:SHOWN_FAILURES]
        for target, parent in ((meant, wrong), (wrong, meant)):
            agreeing = [
                number
                for number, steps in enumerate(readings)
                if number != target and _agrees(steps, readings[target], readings[parent])
            ]
            if any(all(public[n][t] == public[target][t] for t in first) for n in agreeing):
                return False
    return True


def _agrees(steps: Steps, target: Steps, parent: Steps) -> bool:
    """Returns whether `steps` is right wherever the parent is."""
    return all(
        one is right
        for one, right, written in zip(steps, target, parent, strict=True)
        if written is right
    )
