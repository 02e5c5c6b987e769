"""Tests of underspecified problems: one statement, several readings, the tests decide."""

import hashlib
from itertools import combinations

import numpy as np
import pytest

from engine.config.problems import FEW_READINGS, MANY_READINGS, READING_COUNTS, ProblemsConfig
from engine.config.sandbox import SandboxConfig
from engine.environments.programs.prompts import FEEDBACK_TESTS, Feedback, refinement_prompts
from engine.policy.starters.demonstrations import public_reports
from engine.problems.generator import GeneratedProblems, Split, make_problem, make_underspecified
from engine.problems.generator.compose import Step, program, run_steps, split_of
from engine.problems.generator.operations import OPERATIONS
from engine.problems.generator.readings import OPEN_OPERATIONS
from engine.problems.generator.underspecified import (
    SHOWN_FAILURES,
    Variants,
    draw_edge_input,
    make_variants,
    readings_of,
)
from engine.problems.identity import content_hash
from engine.problems.overlap import code_tokens, words
from engine.problems.problem import CallTest, Problem
from engine.problems.source import load_problem_set
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify

OPEN_NAMES = {operation.name for operation in OPEN_OPERATIONS}
STATED_DIGEST = "f4e96cfa36f501e2"
"""Of the fully stated problems that three seeds have always had."""
MIXED_DIGEST = "82954c4a9698c819"
"""Of the half underspecified problems that they have always had."""
SOME = [(k, index) for k in FEW_READINGS for index in range(30)]
SOME += [(k, index) for k in MANY_READINGS for index in range(6)]


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(SandboxConfig()) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def some_variants() -> list[Variants]:
    return [make_variants(3, index, k) for k, index in SOME]


def outputs(variants: Variants, reading: int) -> list[str]:
    steps = variants.readings[reading]
    return [repr(run_steps(steps, value)) for value in variants.inputs]


@pytest.mark.parametrize(("share", "expected"), [(0.0, STATED_DIGEST), (0.5, MIXED_DIGEST)])
def test_the_streams_of_problems_are_what_they_always_were(share, expected):
    digest = hashlib.sha256()
    for seed in (0, 5, 2026):
        for index in range(100):
            problem, split = GeneratedProblems(seed, share).at(index)
            line = f"{problem.id} {content_hash(problem)} {problem.reference} {problem.tags}"
            digest.update(f"{line} {split.value}\n".encode())
            assert share or (problem, split) == make_problem(seed, index)
    assert digest.hexdigest()[:16] == expected


def test_a_problem_is_a_function_of_seed_index_and_number_of_readings():
    first, again = ([make_underspecified(5, i, 4) for i in range(20)] for _ in range(2))
    assert first == again
    assert make_underspecified(5, 0, 4) != make_underspecified(6, 0, 4)
    assert len({make_underspecified(5, 0, k)[0].id for k in READING_COUNTS}) == 7
    with pytest.raises(ValueError, match="readings = 5: a statement has 2, 3, 4, 6, 8, 12, 16 rea"):
        make_underspecified(5, 0, 5)


def test_all_readings_share_statement_inputs_and_split(some_variants):
    for (k, index), variants in zip(SOME, some_variants, strict=True):
        problems = [variants.problem(reading) for reading in range(k)]
        assert len(problems) == len({p.reference for p in problems}) == k
        assert len({(p.id, p.statement, p.tags) for p in problems}) == 1
        arguments = {
            repr([t.arguments for t in (*p.public_tests, *p.private_tests)]) for p in problems
        }
        assert len(arguments) == 1
        problem, split = make_underspecified(3, index, k)
        assert problem == problems[variants.meant] and split is split_of(variants.names)
        assert problem.tags[-1] == f"readings-{k}"


def test_every_reading_is_meant_about_equally_often():
    meant = [make_variants(8, index, 4).meant for index in range(200)]
    assert all(30 <= meant.count(reading) <= 70 for reading in range(4))


def test_public_and_private_tests_distinguish_every_two_readings(some_variants):
    for variants in some_variants:
        results = [outputs(variants, reading) for reading in range(len(variants.readings))]
        for one, other in combinations(results, 2):
            assert one[:3] != other[:3]
            assert one[3:] != other[3:]


def test_a_shown_failure_leaves_one_reading_of_the_wrong_steps(some_variants):
    """As an agent sees it: of all programs that keep the parent's right steps, one gives the
    results that the prompt shows as expected."""
    assert SHOWN_FAILURES == FEEDBACK_TESTS
    for variants in some_variants:
        problem = variants.problem(variants.meant)
        target = variants.readings[variants.meant]
        for parent in variants.readings:
            if parent == target:
                continue
            text = program(parent)
            reports = public_reports(problem, text)
            prompt = next(refinement_prompts(problem, Feedback(text, reports)))[0]["content"]
            shown = [t for t in problem.public_tests if f"solve({t.arguments[0]!r}) gave" in prompt]
            assert shown
            fitting = [
                steps
                for steps in variants.readings
                if all(run_steps(steps, t.arguments[0]) == t.expected for t in shown)
                and all(
                    one is right
                    for one, right, was in zip(steps, target, parent, strict=True)
                    if was is right
                )
            ]
            assert fitting == [target], problem.id


def test_the_references_of_all_readings_pass_their_own_tests_only(sandbox, some_variants):
    pairs, expected = [], []
    for variants in some_variants[::3]:
        problem = variants.problem(variants.meant)
        for reading, steps in enumerate(variants.readings):
            pairs.append((problem, program(steps)))
            expected.append(reading == variants.meant)
    verdicts = verify(sandbox, pairs)
    assert [v.passed for v in verdicts] == expected
    public = [v.public_passed == len(v.public) for v in verdicts]
    assert public == expected, "the public tests do not reveal the reading"


def test_the_code_of_every_reading_does_what_its_function_does(sandbox):
    rng = np.random.default_rng(0)
    pairs = []
    for operation in OPEN_OPERATIONS:
        assert len(operation.readings) in FEW_READINGS  # so that more need several open details
        for reading in operation.readings:
            for constant in reading.constants or (0,):
                step, tests = Step(reading, constant), []
                while len(tests) < 6:
                    value = draw_edge_input(rng, reading.source, (constant,))
                    if value or not isinstance(value, list | str):
                        tests.append(CallTest((value,), step.apply(value)))
                problem = Problem(reading.name, "-", "solve", tuple(tests[:1]), tuple(tests[1:]))
                pairs.append((problem, program((step,))))
    verdicts = verify(sandbox, pairs)
    assert [p.id for (p, _), v in zip(pairs, verdicts, strict=True) if not v.passed] == []


def test_no_reading_is_a_fully_stated_operation():
    stated = {step_code(op, constant) for op in OPERATIONS for constant in op.constants or (0,)}
    named = [op.name for op in (*OPERATIONS, *OPEN_OPERATIONS)]
    phrases = [phrase for op in OPERATIONS for phrase in op.phrases]
    codes = [
        step_code(reading, constant)
        for op in OPEN_OPERATIONS
        for reading in op.readings
        for constant in reading.constants or (0,)
    ]
    assert not stated & set(codes)
    assert len(set(codes)) == len(codes) and len(set(named)) == len(named)
    assert not {op.phrase for op in OPEN_OPERATIONS} & set(phrases)


def step_code(operation, constant):
    return operation.source + Step(operation, constant).code()


@pytest.mark.large
def test_the_splits_share_no_composition_statement_or_program():
    mixed = GeneratedProblems(11, 0.5)
    parts = [mixed.first(split, 120) for split in Split]
    for one, other in combinations(parts, 2):
        for key in (
            lambda p: tuple(tag for tag in p.tags if not tag.startswith("readings-")),
            lambda p: " ".join(words(p.statement)),
            lambda p: " ".join(code_tokens(p.reference)),
        ):
            assert not {key(p) for p in one} & {key(p) for p in other}


@pytest.mark.large
def test_every_open_operation_occurs():
    names = {
        name
        for k in FEW_READINGS
        for index in range(400)
        for name in make_variants(0, index, k).names
    }
    assert names >= OPEN_NAMES


def test_a_composition_that_fails_without_one_of_its_steps_ends_no_draw():
    """Among the compositions drawn for this index is one whose next step fails on an empty list if
    the step before it is left out."""
    problem, _ = make_underspecified(1, 4220, 2)
    assert problem.tags[-1] == "readings-2"


def test_a_mixture_has_its_share_and_a_larger_one_keeps_its_problems():
    few, more = (GeneratedProblems(2, share, 4, 6) for share in (0.3, 0.6))
    indexes = range(400)
    taken = [{i for i in indexes if mixed.readings_at(i)} for mixed in (few, more)]
    assert taken[0] < taken[1]
    assert 90 <= len(taken[0]) <= 150 and 200 <= len(taken[1]) <= 280
    assert {few.readings_at(i) for i in taken[0]} == {4, 6}
    for index in sorted(taken[0])[:20]:
        assert few.at(index) == more.at(index)
        assert few.at(index)[0].id.startswith("underspecified-1-2-")
    for index in sorted(set(indexes) - taken[1])[:20]:
        assert more.at(index) == make_problem(2, index)


def test_many_readings_are_of_several_open_details_and_only_on_request(some_variants):
    for variants in some_variants:
        details = [name for name in variants.names if name in OPEN_NAMES]
        assert len(variants.readings) in FEW_READINGS or len(details) > 1
    usual, more = GeneratedProblems(2, 1.0), GeneratedProblems(2, 1.0, most_readings=16)
    assert {usual.readings_at(index) for index in range(200)} == set(FEW_READINGS)
    assert {more.readings_at(index) for index in range(200)} == set(READING_COUNTS)
    several = GeneratedProblems.of(
        ProblemsConfig(seed=2, underspecified_share=1, fewest_readings=12, most_readings=16)
    )
    assert {several.readings_at(index) for index in range(50)} == set(MANY_READINGS)


@pytest.mark.parametrize("k", READING_COUNTS)
def test_the_id_of_a_problem_names_its_number_of_readings(k):
    assert readings_of(make_underspecified(5, 3, k)[0].id) == k
    assert readings_of(make_problem(5, 3)[0].id) is None
    for other in ("HumanEval/4-2", "underspecified", "underspecified-sum", "underspecified-1-2-x"):
        assert readings_of(other) is None, "a data set may name its problems so"


def test_the_settings_choose_the_mixture():
    sizes = {"train": 20, "validation": 20, "test": 20}
    config = ProblemsConfig(seed=4, underspecified_share=1, fewest_readings=8, **sizes)
    result = load_problem_set(config)
    problems = [*(result.train[i] for i in range(20)), *result.validation, *result.test]
    assert {p.tags[-1] for p in problems} == {"readings-8"}
    stated = load_problem_set(ProblemsConfig(seed=4, **sizes))
    assert stated.test == GeneratedProblems(4).first(Split.TEST, 20)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"underspecified_share": 1.5}, "less than or equal to 1"),
        ({"underspecified_share": 0.5, "dataset": "a.jsonl"}, "only generated problems"),
        ({"fewest_readings": 5, "most_readings": 5}, "between 5 and 5 readings"),
        ({"fewest_readings": 6, "most_readings": 3}, "between 6 and 3 readings"),
        ({"fewest_readings": 1}, "greater than or equal to 2"),
        ({"most_readings": 17}, "less than or equal to 16"),
        ({"fewest_readings": 12}, "fewest_readings = 12 and most_readings = 8"),
    ],
)
def test_an_impossible_mixture_is_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        ProblemsConfig(**settings)
