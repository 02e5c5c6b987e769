"""Tests of the built-in generator: reproducible, sound, and split by structure."""

import numpy as np
import pytest

from engine.config.sandbox import SandboxConfig
from engine.problems.generator import GeneratedProblems, Split, make_problem
from engine.problems.generator.compose import Step, draw_input, program, split_of
from engine.problems.generator.operations import LIST, NUMBER, OPERATIONS, TEXT
from engine.problems.problem import CallTest, Problem
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(SandboxConfig()) as sandbox:
        yield sandbox


def test_there_are_enough_operations_over_all_three_types():
    assert len(OPERATIONS) >= 40
    assert {op.source for op in OPERATIONS} == {LIST, NUMBER, TEXT}
    assert len({op.name for op in OPERATIONS}) == len(OPERATIONS)


def test_a_problem_is_a_function_of_seed_and_index():
    assert [make_problem(5, i) for i in range(40)] == [make_problem(5, i) for i in range(40)]
    assert make_problem(5, 0) != make_problem(6, 0)


def test_splits_share_no_composition():
    structures = {
        split: {p.tags for p in GeneratedProblems(11).first(split, 250)} for split in Split
    }
    train, validation, test = (structures[split] for split in Split)
    assert not (train & validation or train & test or validation & test)


def test_the_split_does_not_depend_on_the_seed():
    for seed in (1, 2):
        for index in range(200):
            problem, split = make_problem(seed, index)
            assert split is split_of(problem.tags)


def test_all_difficulties_occur_in_every_split():
    for split in Split:
        results = {p.difficulty for p in GeneratedProblems(4).first(split, 80)}
        assert results == {1, 2, 3}


def test_every_reference_passes_all_of_its_tests(sandbox):
    problems = [make_problem(21, i)[0] for i in range(250)]
    verdicts = verify(sandbox, [(p, p.reference) for p in problems])
    assert [p.id for p, v in zip(problems, verdicts, strict=True) if not v.passed] == []


def test_the_code_of_every_operation_does_what_its_function_does(sandbox):
    rng = np.random.default_rng(0)
    pairs = []
    for operation in OPERATIONS:
        for constant in operation.constants or (0,):
            step = Step(operation, constant)
            values = [draw_input(rng, operation.source) for _ in range(6)]
            tests = tuple(CallTest((v,), step.apply(v)) for v in values)
            problem = Problem(operation.name, "-", "solve", tests[:1], tests[1:])
            pairs.append((problem, program((step,))))
    verdicts = verify(sandbox, pairs)
    assert [p.id for (p, _), v in zip(pairs, verdicts, strict=True) if not v.passed] == []


def test_leaving_out_a_step_of_one_type_fails_a_public_test(sandbox):
    pairs = []
    for index in range(150):
        problem, _ = make_problem(8, index)
        lines = problem.reference.splitlines(keepends=True)
        by_name = {op.name: op for op in OPERATIONS}
        for position, tag in enumerate(problem.tags):
            if by_name[tag].source == by_name[tag].target:
                shorter = lines[: position + 1] + lines[position + 2 :]
                pairs.append((problem, "".join(shorter)))
    verdicts = verify(sandbox, pairs)
    assert pairs
    assert all(v.public_passed < len(v.public) for v in verdicts)


def test_statements_name_the_constants_of_the_program():
    for index in range(200):
        problem, _ = make_problem(9, index)
        assert problem.statement.startswith("Write solve(x) for ")
        assert "{" not in problem.statement
