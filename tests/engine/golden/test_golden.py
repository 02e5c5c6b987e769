import json
from pathlib import Path

import pytest

from engine.config.methods import registry
from engine.golden.cases import check_file, deviations, run_case
from engine.golden.kinds import KINDS
from engine.golden.kinds.credit import GROUP_NORM

DATA = Path(__file__).parents[2] / "data"
FILES = [DATA / "golden.json", *sorted((DATA / "golden").glob("*.json"))]
"""Cases of the algorithm, and one file for each method that came since."""
CASES = [case for file in FILES for case in json.loads(file.read_text())["cases"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_case_holds(case):
    assert run_case(case) == []


def test_every_kind_has_a_case():
    assert {case["kind"] for case in CASES} == set(KINDS)


def methods_of(registry):
    """Methods that cases name as such."""
    inputs = [case["inputs"] for case in CASES if KINDS[case["kind"]].registry == registry]
    return {one["method"] for one in inputs if "method" in one}


def test_every_advantage_and_every_loss_has_a_case():
    inputs = [case["inputs"] for case in CASES if KINDS[case["kind"]].registry]
    named = {one.get("estimator", "mars2") for one in inputs if "rewards" in one}
    named |= methods_of("advantages")
    assert (named - {GROUP_NORM}) | with_own_kind("advantages") == set(
        registry("advantages").methods.own
    )
    losses = {one["loss"] for one in inputs if "loss" in one} | methods_of("losses")
    assert losses | with_own_kind("losses") == set(registry("losses").methods.own)


def with_own_kind(kind):
    """Methods that have a kind of their own in their module."""
    methods = registry(kind).methods
    return {name for name in methods.own if hasattr(methods.source(name), "GOLDEN")}


def test_an_option_of_a_method_is_an_input_of_its_cases():
    case = next(case for case in CASES if case["name"] == "adora_short_right_shaped")
    whole = {**case, "inputs": {**case["inputs"], "weight": 1.0}}
    assert run_case(whole)[0] == "[0]: expected 0.09771612245025804, got 0.9771612245025804"
    assert run_case({**case, "inputs": {**case["inputs"], "weight": 0.1}}) == []
    assert (
        "inputs.weight: unknown input"
        in run_case({**case, "inputs": {**case["inputs"], "estimator": "grpo", "weight": 0.1}})[0]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_wrong_expectation_is_noticed(case):
    assert run_case({**case, "expected": spoiled(case["expected"])}) != []


def spoiled(expected):
    """The same value with its last number or flag changed."""
    if isinstance(expected, dict):
        last = list(expected)[-1]
        return {**expected, last: spoiled(expected[last])}
    if isinstance(expected, list):
        return [*expected[:-1], spoiled(expected[-1])] if expected else [1.0]
    if isinstance(expected, bool):
        return not expected
    return f"not {expected}" if isinstance(expected, str) else expected + 1.0


def test_a_file_ends_with_its_count(tmp_path, capsys):
    bad = [
        {"name": "odd", "kind": "horoscope", "inputs": {}, "expected": 1, "tolerance": 0},
        {**CASES[0], "name": "off", "expected": {"m": 0.75}},
        {"name": "bare", "kind": "prior"},
        {"name": "broken", "kind": "prior", "inputs": {}, "expected": 1, "tolerance": 0},
        CASES[1],
    ]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": bad}))
    assert check_file(path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("odd (horoscope): unknown kind 'horoscope'; choose one of advantage")
    assert lines[1] == "off (posterior): m: expected 0.75, got 0.5"
    assert lines[2] == "bare (prior): the case lacks inputs, expected, tolerance"
    assert lines[3] == "broken (prior): inputs.dist_type is missing"
    assert lines[-1] == "1 passed, 4 failed"
    assert check_file(path, as_json=True) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["passed"], data["failed"]) == (1, 4)
    assert data["cases"][1]["wrong"] == ["m: expected 0.75, got 0.5"]


def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys):
    path = tmp_path / "none.json"
    assert check_file(path) == 2
    path.write_text("{}")
    assert check_file(path) == 2
    assert capsys.readouterr().err.count("none.json") >= 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_unknown_input_is_named(case):
    (problem,) = run_case({**case, "inputs": {**case["inputs"], "epsylon": 1}})
    assert problem.startswith("inputs.epsylon: unknown input; choose one of ")


def test_infinity_is_written_as_text_or_null():
    for written in (None, "inf", "Infinity", float("inf")):
        assert deviations({"a": written}, {"a": float("inf")}, 1e-6) == []
    assert deviations({"a": 1.0}, {"a": float("nan")}, 1e-6) != []
    assert deviations({"a": 1.0}, {}, 1e-6) != []


@pytest.mark.parametrize(
    "field, value",
    [
        ("kind", []), ("inputs", []), ("inputs", None), ("tolerance", None), ("tolerance", "x"),
        ("tolerance", float("inf")), ("tolerance", float("nan")), ("tolerance", -1),
        ("tolerance", True), ("expected", {}), ("expected", {"m": 10**400}),
        ("expected", {"nothing": None}),
    ],
)  # fmt: skip
def test_a_case_that_could_not_fail_fails(field, value):
    assert run_case({**CASES[0], field: value}) != []


@pytest.mark.parametrize("text", ['{"cases": []}', "[" * 5000, "[1]", "\x00"])
def test_a_file_without_cases_does_not_pass(tmp_path, text):
    path = tmp_path / "cases.json"
    path.write_text(text)
    assert check_file(path) == 2
