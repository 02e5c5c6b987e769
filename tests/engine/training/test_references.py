"""Tests that a problem whose own reference fails is reported and stays excluded from a run."""

from dataclasses import replace
from functools import partial

import pytest

from engine.config.problems import ProblemsConfig
from engine.config.sandbox import SandboxConfig
from engine.problems.errors import DatasetError
from engine.problems.jsonl import save_problems
from engine.problems.problem import CallTest, Problem
from engine.problems.source import load_problem_set
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from engine.training.reference_check import without_failing_references


@pytest.fixture(scope="module")
def verifier():
    with Sandbox(SandboxConfig()) as sandbox:
        yield partial(verify, sandbox)


def plus(number: int, reference: str) -> Problem:
    tests = (CallTest((1,), 1 + number),)
    return Problem(f"plus-{number}", f"Add {number}.", "add", tests, tests, reference)


def right(number: int) -> Problem:
    return plus(number, f"def add(x): return x + {number}")


def load(tmp_path, problems, test=3):
    save_problems(tmp_path / "problems.jsonl", problems)
    file = str(tmp_path / "problems.jsonl")
    return load_problem_set(ProblemsConfig(dataset=file, train=9, validation=0, test=test))


def names(problems):
    return {problem.id for problem in (*problems.train, *problems.test)}


def test_failing_references_are_left_out_by_name_and_missing_ones_stay(tmp_path, verifier):
    wrong, raising = plus(5, "def add(x): return x"), plus(6, "def add(x): return y")
    problems = load(tmp_path, [*map(right, range(4)), wrong, raising, plus(7, "")])
    left = without_failing_references(problems, tmp_path, verifier)
    assert names(left) == {"plus-0", "plus-1", "plus-2", "plus-3", "plus-7"}
    result = "\n".join(map(str, left.left_out))
    assert (
        "problems.jsonl:5: reference = 'plus-5': its own reference ends as wrong_answer" in result
    )
    assert "NameError" in result and len(left.left_out) == 2


def test_a_resumed_run_has_the_same_problems_without_running_anything(tmp_path, verifier):
    problems = load(tmp_path, [*map(right, range(4)), plus(5, "def add(x): return x")])
    first = without_failing_references(problems, tmp_path, verifier)

    def never(programs):
        raise AssertionError(programs)

    assert without_failing_references(problems, tmp_path, never) == first
    mended = load(tmp_path, [*map(right, range(4)), right(5)])
    assert names(without_failing_references(mended, tmp_path, never)) == names(first)
    added = load(tmp_path, [*map(right, range(4)), plus(5, "def add(x): return x"), right(6)])
    assert "plus-6" in names(without_failing_references(added, tmp_path, verifier))


def test_a_split_that_would_be_left_without_a_problem_is_refused(tmp_path, verifier):
    problems = load(tmp_path, [replace(right(n), reference="def add(x): pass") for n in range(4)])
    with pytest.raises(DatasetError, match="reference = 'plus-"):
        without_failing_references(problems, tmp_path, verifier)


def test_generated_problems_are_taken_as_they_were_made(tmp_path):
    problems = load_problem_set(ProblemsConfig(train=3, validation=1, test=1))
    assert without_failing_references(problems, tmp_path, lambda _: []) is problems
