"""`python -m engine problems`: what people and scripts see of a data set."""

import json

from engine.__main__ import main
from engine.problems.load import load_dataset
from tests.problems import rows


def write(path, *data):
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return str(path)


WRONG = {**rows.MBPP, "task_id": 12, "text": "Another.", "code": "def remove(s, ch):\n    return s"}
UNKNOWN = {**rows.ACECODE, "inferences": []}


def test_a_clean_data_set_is_no_complaint(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", rows.MBPP, rows.MBPP_SANITIZED)
    assert main(["problems", "check", file, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    data = json.loads(line)
    assert data["totals"] == {
        "problems": 2, "tests": 7, "passed": 2, "failed": 0, "unverified": 0, "left_out": 0,
    }  # fmt: skip
    assert data["format"] == "mbpp" and data["failed"] == data["left_out"] == []


def test_every_complaint_has_its_row(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    without = {**rows.MBPP, "test_list": []}
    file = write(tmp_path / "a.jsonl", rows.MBPP, WRONG, without)
    kept = tmp_path / "kept.jsonl"
    assert main(["problems", "check", file, "--keep", str(kept)]) == 1
    out = capsys.readouterr().out
    assert "mbpp/12" in out and "wrong_answer" in out and "left out" in out
    assert "problems 2, tests 8, passed 1, failed 1, unverified 0, left out 1" in " ".join(
        out.split()
    )
    assert [problem.id for problem in load_dataset(kept).problems] == ["mbpp/11"]


def test_a_failing_reference_is_placed_for_machines(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", rows.MBPP, WRONG)
    assert main(["problems", "check", file, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["failed"]
    assert (finding["file"], finding["line"], finding["id"]) == (file, 2, "mbpp/12")
    assert finding["verdict"] == "wrong_answer" and 0 < finding["passed"] < 1


def test_a_problem_without_a_reference_is_not_said_to_pass(tmp_path, capsys):
    assert main(["problems", "check", write(tmp_path / "a.jsonl", UNKNOWN), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["totals"]["passed"] == 0
    assert [finding["id"] for finding in data["unverified"]] == ["oss_1"]


def test_a_file_that_cannot_be_read_ends_with_its_cause(tmp_path, capsys):
    assert main(["problems", "check", str(tmp_path / "none.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_overlap_is_reported_and_is_a_complaint(tmp_path, capsys):
    first = write(tmp_path / "a.jsonl", rows.MBPP, WRONG)
    second = write(tmp_path / "b.jsonl", {**rows.MBPP, "task_id": 99})
    assert main(["problems", "overlap", first, second, "--json", "--threshold", "0.9"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["overlaps"][0] == {
        "first": "mbpp/11", "second": "mbpp/99", "kind": "problem", "share": 1.0,
    }  # fmt: skip
    third = write(tmp_path / "c.jsonl", rows.MBPP_SANITIZED)
    assert main(["problems", "overlap", first, third]) == 0
    assert "0 of 2 problems" in capsys.readouterr().out
