"""Tests that a problem is identified by its content, which determines splits and overlap."""

import json
import random
from dataclasses import replace

import pytest

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.generator import make_problem
from engine.problems.identity import content_hash, set_hash
from engine.problems.jsonl import save_problems
from engine.problems.load import load_dataset
from engine.problems.overlap import overlaps
from engine.problems.problem import CallTest, CodeTest, Comparison, Limits, Problem, StdinTest
from engine.problems.source import load_problem_set
from engine.problems.splits import shuffled
from tests.engine.problems import rows

BASE = Problem("a", "Do.", "f", (CallTest(({1, 2},), {"a": 1, "b": 2}),), (CallTest((1,), 1),))


def test_id_reference_and_order_do_not_count():
    same = replace(
        BASE, id="b", reference="def f(x): ...", difficulty=3, tags=("x",),
        public_tests=(CallTest(({2, 1},), {"b": 2, "a": 1}),),
    )  # fmt: skip
    assert content_hash(same) == content_hash(BASE)
    two = (CallTest((1,), 1), CallTest((2,), 2))
    assert content_hash(replace(BASE, private_tests=two)) == content_hash(
        replace(BASE, private_tests=two[::-1])
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"statement": "Do!"},
        {"entry_point": "g"},
        {"prelude": "import math"},
        {"comparison": Comparison(loose_types=True)},
        {"limits": Limits(seconds=1.0)},
        {"public_tests": (CallTest(([1, 2],), {"a": 1, "b": 2}),)},
        {"private_tests": (CallTest((1,), True),)},
        {"private_tests": (CallTest((1,), 1.0),)},
        {"private_tests": (CallTest((1,), 1, (2,)),)},
        {"private_tests": (CodeTest("call (1,) 1"),)},
        {"private_tests": (StdinTest("1", "1"),)},
        {"public_tests": BASE.private_tests, "private_tests": BASE.public_tests},
    ],
    ids=str,
)
def test_identity_covers_the_question_and_its_judging(changes):
    assert content_hash(replace(BASE, **changes)) != content_hash(BASE)


def test_the_order_of_fields_of_a_row_does_not_count(tmp_path):
    for name, row in (("a", rows.APPS_CALL), ("b", dict(reversed(rows.APPS_CALL.items())))):
        (tmp_path / f"{name}.json").write_text(json.dumps([row]))
    first, second = (load_dataset(tmp_path / f"{name}.json").problems for name in "ab")
    assert set_hash(first) == set_hash(second)


def test_splits_depend_only_on_content(tmp_path):
    problems = [make_problem(1, index)[0] for index in range(30)]
    config = ProblemsConfig(dataset=str(tmp_path / "a.jsonl"), train=20, validation=4, test=6)
    mixed = [replace(p, id=f"other-{i}") for i, p in enumerate(problems)]
    random.Random(0).shuffle(mixed)
    splits = []
    for content in (problems, mixed):
        save_problems(tmp_path / "a.jsonl", content)
        result = load_problem_set(config)
        parts = [result.train, result.validation, result.test]
        splits.append([[content_hash(p) for p in part] for part in parts])
    assert splits[0] == splits[1]
    assert [len(part) for part in splits[0]] == [20, 4, 6]
    assert len({hash for part in splits[0] for hash in part}) == 30
    other = load_problem_set(config.model_copy(update={"seed": 1}))
    assert [content_hash(p) for p in other.validation] != splits[0][1]


def test_a_new_problem_moves_at_most_one_across_a_border():
    problems = [make_problem(1, index)[0] for index in range(31)]
    before, after = (shuffled(part, 0)[:10] for part in (problems[:30], problems))
    assert len({p.id for p in before} - {p.id for p in after}) <= 1


def test_omitted_fields_of_a_file_are_reported_to_the_run(tmp_path):
    data = [rows.MBPP, {**rows.MBPP, "test_list": []}, rows.MBPP_SANITIZED, rows.MBPP_PLUS_TABLE]
    (tmp_path / "a.json").write_text(json.dumps(data))
    config = ProblemsConfig(dataset=str(tmp_path / "a.json"), train=1, validation=1, test=1)
    result = load_problem_set(config)
    assert [problem.line for problem in result.left_out] == [2]
    with pytest.raises(ConfigError, match="holds 3 problems"):
        load_problem_set(config.model_copy(update={"test": 2}))


def test_overlap_names_the_strictest_kind():
    text = "Given a list of integers return the sum of the squares of all the even ones in it"
    code = (
        "def f(xs):\n    even = [x for x in xs if x is not None and x % 2 == 0]\n"
        "    return sum(x * x for x in even if x > -100 and x < 100)\n"
    )
    second = [
        Problem("p", text, "f", BASE.public_tests, BASE.private_tests, code),
        Problem("q", "Something else entirely.", "g", BASE.public_tests, BASE.private_tests),
    ]
    first = [
        replace(second[0], id="same", reference=""),
        replace(
            second[0], id="shouted", statement=f"{text.upper()}!", private_tests=BASE.public_tests
        ),
        replace(second[0], id="code", statement="New.", reference=f"# mine\n{code}\n\n"),
        replace(second[0], id="longer", statement=f"Please: {text}, or zero.", reference=""),
        replace(
            second[0], id="renamed", statement="New.", reference=f"import sys\n{code}print(1)\n"
        ),
        replace(second[0], id="new", statement="Count the letters of a word.", reference="pass"),
    ]
    results = {overlap.first: (overlap.second, overlap.kind) for overlap in overlaps(first, second)}
    assert results == {
        "same": ("p", "problem"),
        "shouted": ("p", "statement"),
        "code": ("p", "reference"),
        "longer": ("p", "statement n-grams"),
        "renamed": ("p", "reference n-grams"),
    }


def test_boilerplate_is_no_overlap():
    frame = "Write a program that reads the input from stdin and prints the output to stdout now"
    words = ["alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "mu", "nu", "xi"]
    second = [
        replace(BASE, id=word, statement=" ".join([word] * 14) + f" {frame}") for word in words
    ]
    first = [replace(BASE, id="new", statement=" ".join(["omega"] * 14) + f" {frame}")]
    assert overlaps(first, second, threshold=0.1) == []
    assert overlaps(first, second[:5], threshold=0.1)[0].kind == "statement n-grams"
