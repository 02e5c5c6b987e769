"""Tests of problems in JSONL files: round trips, and errors that name every fault."""

import json
import math

import pytest

from engine.problems.errors import DatasetError
from engine.problems.jsonl import load_problems, save_problems
from engine.problems.problem import CallTest, Problem
from engine.sandbox.guest.literals import LiteralError


def problem(name="p-1", **changes):
    fields = {
        "statement": "Return the argument.",
        "entry_point": "solve",
        "public_tests": (CallTest(([1, "é"],), [1, "é"]),),
        "private_tests": (CallTest(((1, 2), {3}), {(1, 2): b"x"}),),
        "reference": "def solve(x):\n    return x\n",
        "difficulty": 2,
        "tags": ("identity",),
    }
    return Problem(name, **{**fields, **changes})


def row(**changes):
    data = {
        "id": "p-1",
        "statement": "Add.",
        "entry_point": "add",
        "public_tests": [{"arguments": [1, 2], "expected": 3}],
        "private_tests": [{"arguments_literal": "(1, -2)", "expected_literal": "-1"}],
    }
    data.update(changes)
    return {key: value for key, value in data.items() if value is not ...}


def write(path, *rows):
    lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def errors_of(path):
    with pytest.raises(DatasetError) as caught:
        load_problems(path)
    return caught.value.issues


def test_saved_problems_are_read_back_equal(tmp_path):
    values = [True, 1, 1.0, None, -0.5, 1e300, "a\0b\ud800", 10**5000, [[]], {"k": [1.5]}]
    tests = tuple(CallTest((value,), value) for value in values)
    problems = [problem(), problem("p-2", public_tests=tests, reference="", tags=())]
    save_problems(tmp_path / "set.jsonl", problems)
    loaded = load_problems(tmp_path / "set.jsonl")
    assert loaded == problems
    for test, value in zip(loaded[1].public_tests, values, strict=True):
        assert type(test.expected) is type(value)
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]


def test_values_without_a_json_form_are_literals_in_the_file(tmp_path):
    save_problems(tmp_path / "set.jsonl", [problem()])
    data = json.loads((tmp_path / "set.jsonl").read_text())
    assert data["public_tests"] == [{"arguments": [[1, "é"]], "expected": [1, "é"]}]
    assert data["private_tests"] == [
        {"arguments_literal": "[(1, 2), {3}]", "expected_literal": "{(1, 2): b'x'}"}
    ]


def test_nan_and_infinity_survive(tmp_path):
    tests = (CallTest((math.inf,), [math.nan, -math.inf]),)
    save_problems(tmp_path / "set.jsonl", [problem(public_tests=tests)])
    (test,) = load_problems(tmp_path / "set.jsonl")[0].public_tests
    assert test.arguments == (math.inf,)
    assert math.isnan(test.expected[0])
    assert test.expected[1] == -math.inf


def test_a_value_that_is_not_plain_is_not_saved_and_leaves_the_old_file(tmp_path):
    save_problems(tmp_path / "set.jsonl", [problem()])
    with pytest.raises(LiteralError, match="object is not a plain value"):
        save_problems(tmp_path / "set.jsonl", [problem(private_tests=(CallTest((), object()),))])
    assert load_problems(tmp_path / "set.jsonl") == [problem()]
    assert len(list(tmp_path.iterdir())) == 1


def test_optional_fields_may_be_left_out_and_blank_lines_are_skipped(tmp_path):
    (loaded,) = load_problems(write(tmp_path / "set.jsonl", "", row(), "  "))
    assert (loaded.reference, loaded.difficulty, loaded.tags) == ("", 0, ())
    assert loaded.private_tests == (CallTest((1, -2), -1),)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ...}, "id"),
        ({"id": 7}, "id"),
        ({"statement": "  "}, "statement"),
        ({"entry_point": "a b"}, "entry_point"),
        ({"entry_point": "class"}, "entry_point"),
        ({"public_tests": []}, "public_tests"),
        ({"private_tests": ...}, "private_tests"),
        ({"private_tests": [3]}, "private_tests[0]"),
        ({"public_tests": [{"arguments": 3, "expected": 1}]}, "public_tests[0].arguments"),
        ({"public_tests": [{"arguments": []}]}, "public_tests[0].expected"),
        (
            {"public_tests": [{"arguments": [], "expected": 1, "expected_literal": "1"}]},
            "public_tests[0].expected",
        ),
        (
            {"public_tests": [{"arguments": [], "expected_literal": "open('x')"}]},
            "public_tests[0].expected_literal",
        ),
        (
            {"public_tests": [{"arguments_literal": "[1, 2", "expected": 1}]},
            "public_tests[0].arguments_literal",
        ),
        (
            {"public_tests": [{"arguments_literal": [1], "expected": 1}]},
            "public_tests[0].arguments_literal",
        ),
        ({"public_tests": [{"arguments": [], "expected": 1, "x": 1}]}, "public_tests[0].x"),
        ({"reference": None}, "reference"),
        ({"difficulty": True}, "difficulty"),
        ({"difficulty": -1}, "difficulty"),
        ({"tags": "sorting"}, "tags"),
        ({"tests": []}, "tests"),
    ],
)
def test_an_error_names_its_line_and_field(tmp_path, changes, field):
    errors = errors_of(write(tmp_path / "set.jsonl", row(id="other"), row(**changes)))
    assert [(fault.line, fault.field) for fault in errors] == [(2, field)]
    assert "set.jsonl:2: " in str(errors[0])


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "is not JSON (Expecting"),
        ("[1]", "one JSON object"),
        ('{"id": "a", "id": "b"}', "'id' comes twice"),
        ('{"id": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=["torn", "list", "twice", "nan", "deep"],
)
def test_a_line_that_is_no_json_object_is_named(tmp_path, line, part):
    (fault,) = errors_of(write(tmp_path / "set.jsonl", line, row()))
    assert fault.line == 1
    assert part in fault.remedy


def test_all_errors_of_a_file_are_reported_at_once(tmp_path):
    errors = errors_of(write(tmp_path / "set.jsonl", row(id=""), row(id="a"), row(id="a"), "x"))
    assert [(fault.line, fault.field) for fault in errors] == [(1, "id"), (3, "id"), (4, "line")]
    assert "line 2" in errors[1].remedy


def test_a_missing_or_empty_file_is_named(tmp_path):
    (missing,) = errors_of(tmp_path / "no.jsonl")
    assert "No such file" in missing.remedy
    (empty,) = errors_of(write(tmp_path / "empty.jsonl", ""))
    assert "no problem" in empty.remedy


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    (tmp_path / "set.jsonl").write_bytes(b'{"id": "\xff"}\n')
    (fault,) = errors_of(tmp_path / "set.jsonl")
    assert (fault.line, fault.field) == (1, "line")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    save_problems(tmp_path / "a.jsonl", [problem()])
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.jsonl").read_bytes())
    assert load_problems(tmp_path / "b.jsonl") == [problem()]
