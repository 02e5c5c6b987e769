"""Tests that every row of a data set is kept, or reported with the reason why not."""

import json
from dataclasses import replace

import pytest
from pyarrow import Table, parquet

from engine.config import bounded_json
from engine.problems.errors import DatasetError
from engine.problems.jsonl import save_problems
from engine.problems.load import format_names, load_dataset
from engine.problems.problem import (
    CallTest,
    CodeTest,
    Comparison,
    Limits,
    Problem,
    StdinTest,
)
from tests.engine.problems import rows

OURS = [
    Problem(
        "call", "Add.", "Adder.add", (CallTest((1, {2}), 3, (3.0,)),), (CallTest((0,), 0),),
        prelude="import math", comparison=Comparison(1e-6, True, "def check(g, e, a): return True"),
        limits=Limits(1.5, 64),
    ),
    Problem("stdin", "Echo.", "", (StdinTest("1\n", "1\n", ("2",)),), (StdinTest("", ""),)),
    Problem("code", "Add.", "add", (CodeTest("assert add(1, 2) == 3"),), (CallTest((), 0),)),
]  # fmt: skip


def write(path, *data):
    path.write_text("".join((d if isinstance(d, str) else json.dumps(d)) + "\n" for d in data))
    return path


def test_our_own_files_say_everything_that_a_problem_has(tmp_path):
    save_problems(tmp_path / "a.jsonl", OURS)
    dataset = load_dataset(tmp_path / "a.jsonl")
    assert (dataset.format, dataset.problems, dataset.left_out) == ("grove", OURS, [])
    assert [location.line for location in dataset.locations] == [1, 2, 3]


def test_our_own_problems_are_read_from_other_containers(tmp_path):
    save_problems(tmp_path / "a.jsonl", OURS)
    records = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    (tmp_path / "b.json").write_text(json.dumps(records, indent=1))
    assert load_dataset(tmp_path / "b.json").problems == OURS
    simple = [{k: v for k, v in record.items() if k != "tags"} for record in records[1:2]]
    parquet.write_table(Table.from_pylist(simple), tmp_path / "c.parquet")
    assert load_dataset(tmp_path / "c.parquet").problems == OURS[1:2]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"comparison": {"tolerance": 0}}, "comparison.tolerance"),
        ({"comparison": {"loose_types": 1}}, "comparison.loose_types"),
        ({"comparison": {"checker": "x = 1"}}, "comparison.checker"),
        ({"comparison": {"epsilon": 1}}, "comparison.epsilon"),
        ({"comparison": 3}, "comparison"),
        ({"limits": {"seconds": -1}}, "limits.seconds"),
        ({"limits": {"memory_mb": 1.5}}, "limits.memory_mb"),
        ({"prelude": 3}, "prelude"),
        ({"entry_point": "a.b.c"}, "entry_point"),
        ({"entry_point": "a.class"}, "entry_point"),
        ({"public_tests": [{"stdin": "1"}]}, "public_tests[0].expected"),
        ({"public_tests": [{"stdin": "1", "expected": "1", "x": 1}]}, "public_tests[0].x"),
        ({"public_tests": [{"stdin": "1", "expected": "1", "accepted": "1"}]},
         "public_tests[0].accepted"),
        ({"public_tests": [{"code": "assert True"}]}, "public_tests[0]"),
        ({"public_tests": [{"arguments": [], "expected": 1}]}, "public_tests[0]"),
    ],
)  # fmt: skip
def test_an_error_in_a_grove_file_names_its_field(tmp_path, changes, field):
    save_problems(tmp_path / "a.jsonl", OURS[1:2])
    data = {**json.loads((tmp_path / "a.jsonl").read_text()), **changes}
    with pytest.raises(DatasetError) as caught:
        load_dataset(write(tmp_path / "a.jsonl", data))
    assert field in {problem.field for problem in caught.value.issues}
    assert "a.jsonl:1" in str(caught.value)


def test_rows_that_cannot_be_used_are_named_and_left_out(tmp_path):
    without = {**rows.MBPP, "task_id": 12, "test_list": []}
    again = {**rows.MBPP, "task_id": 13}
    file = write(tmp_path / "a.jsonl", rows.MBPP, without, again, "{", [1], rows.MBPP_SANITIZED)
    dataset = load_dataset(file)
    assert dataset.format == "mbpp"
    assert [problem.id for problem in dataset.problems] == ["mbpp/11", "mbpp/82"]
    assert [location.line for location in dataset.locations] == [1, 6]
    results = [(fault.line, fault.field, fault.remedy) for fault in dataset.left_out]
    assert [line for line, *_ in results] == [2, 3, 4, 5]
    assert "without tests" in results[0][2]
    assert f"the same problem as mbpp/11 at {file}:1" in results[1][2]
    assert "is not JSON" in results[2][2]
    assert "one JSON object" in results[3][2]


def test_a_row_of_another_layout_or_with_a_field_twice_is_left_out_with_that_reason(tmp_path):
    twice = json.dumps(rows.MBPP_SANITIZED)[:-1] + ', "code": "def remove(): pass"}'
    dataset = load_dataset(write(tmp_path / "a.jsonl", rows.MBPP, rows.HUMANEVAL, twice))
    assert [problem.id for problem in dataset.problems] == ["mbpp/11"]
    other, second = dataset.left_out
    assert other.remedy == "is of the layout humaneval, and the file is read as mbpp; give it alone"
    assert "field 'code' comes twice" in second.remedy


def test_byte_order_marks_are_no_part_of_rows_also_where_files_were_joined(tmp_path):
    lines = [json.dumps(one) for one in (rows.MBPP, rows.MBPP_SANITIZED)]
    joined = "".join(f"\ufeff{line}\r\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(joined, "utf-8", newline="")
    dataset = load_dataset(tmp_path / "a.jsonl")
    assert len(dataset.problems) == 2 and not dataset.left_out
    (tmp_path / "b.json").write_text(f"\ufeff[{','.join(lines)}]", "utf-8")
    assert load_dataset(tmp_path / "b.json").problems == dataset.problems
    assert bounded_json.loads("\ufeff[2.0]") == bounded_json.loads(b"\xef\xbb\xbf[2.0]") == [2.0]


def test_a_file_of_which_nothing_can_be_used_is_refused_with_every_cause(tmp_path):
    broken = {**rows.MBPP, "test_list": []}
    with pytest.raises(DatasetError) as caught:
        load_dataset(write(tmp_path / "a.jsonl", broken, broken))
    assert [problem.line for problem in caught.value.issues] == [1, 2]


def test_ids_that_are_used_twice_are_made_different(tmp_path):
    other = {**rows.MBPP, "text": "Another text."}
    first, second = load_dataset(write(tmp_path / "a.jsonl", rows.MBPP, other)).problems
    assert first.id == "mbpp/11" and second.id.startswith("mbpp/11#")
    ids = {p.id for p in load_dataset(write(tmp_path / "b.jsonl", other, rows.MBPP)).problems}
    assert "mbpp/11" in ids and len(ids) == 2


def test_a_format_can_be_named(tmp_path):
    file = write(tmp_path / "a.jsonl", rows.TACO)
    assert load_dataset(file).problems[0].limits == Limits(2.0, 256)
    assert load_dataset(file, "apps").problems[0].limits == Limits(4.0)
    with pytest.raises(DatasetError, match="one of auto, grove, evalplus"):
        load_dataset(file, "leet")
    assert {"auto", "grove", "humaneval", "kodcode"} <= set(format_names())


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ({"a": 1, "b": 2}, r"fields = \['a', 'b'\]: no format has these fields"),
        ("", "holds no problem"),
        ("{", "is not JSON"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused_with_the_cause(tmp_path, line, part):
    with pytest.raises(DatasetError, match=part):
        load_dataset(write(tmp_path / "a.jsonl", line))


def test_problems_of_any_format_can_be_saved_in_our_own(tmp_path):
    names = [name for name in vars(rows) if name.isupper() and not name.startswith("_")]
    problems = []
    for name in names:
        (problem,) = load_dataset(write(tmp_path / "a.jsonl", getattr(rows, name))).problems
        problems.append(replace(problem, id=name))
    save_problems(tmp_path / "b.jsonl", problems)
    assert load_dataset(tmp_path / "b.jsonl").problems == problems
