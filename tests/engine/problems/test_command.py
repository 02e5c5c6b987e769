"""Tests of `python -m engine problems`: its output on a data set, for people and for scripts."""

import json
import os
import subprocess
import sys

import pytest

from engine.__main__ import main
from engine.problems.errors import DatasetError
from engine.problems.load import load_dataset
from tests.engine.problems import rows
from tests.helpers.waiting import patience


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


def test_where_nothing_can_be_kept_is_refused_before_the_work(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", rows.MBPP)
    assert main(["problems", "check", file, "--keep", str(tmp_path)]) == 2
    taken = capsys.readouterr()
    assert str(tmp_path) in taken.err and "partial" not in taken.err and not taken.out


def test_what_cannot_be_kept_takes_no_report_away(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", rows.MBPP)
    assert main(["problems", "check", file, "--keep", "/dev/full", "--json"]) == 2
    taken = capsys.readouterr()
    assert json.loads(taken.out)["totals"]["passed"] == 1 and "No space left" in taken.err


def test_a_sandbox_that_does_not_start_is_one_line(tmp_path):
    file = write(tmp_path / "a.jsonl", rows.MBPP)
    command = [sys.executable, "-m", "engine", "problems", "check", file]
    limited = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh", *command]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60 * patience())
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "Too many open files" in done.stderr.splitlines()[-1]


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


def test_options_out_of_range_are_refused(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", rows.MBPP)
    for wrong in (["check", file, "--workers", "0"], ["overlap", file, file, "--threshold", "nan"]):
        with pytest.raises(SystemExit):
            main(["problems", *wrong])
        assert ": give a" in capsys.readouterr().err


def test_half_a_surrogate_pair_is_left_out_or_refused(tmp_path):
    broken = {**rows.MBPP, "task_id": 12, "text": "Half \ud800."}
    dataset = load_dataset(write(tmp_path / "a.jsonl", rows.MBPP, broken))
    (problem,) = dataset.left_out
    assert len(dataset.problems) == 1 and problem.field == "statement" and "half" in str(problem)
    own = {"id": "\udc00", "statement": "s", "entry_point": "f"}
    tests = [{"arguments": [1], "expected": 1}]
    own |= {"public_tests": tests, "private_tests": tests}
    with pytest.raises(DatasetError, match=r"id = .*half of a surrogate pair"):
        load_dataset(write(tmp_path / "b.jsonl", own))


def test_only_printable_text_reaches_the_terminal(tmp_path):
    with (tmp_path / "\udcff.jsonl").open("w") as file:
        file.write(json.dumps(rows.MBPP) + "\n" + json.dumps({**rows.MBPP, "text": 1}) + "\n")
    command = [sys.executable, "-m", "engine", "problems", "check", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120 * patience())
    assert done.returncode == 1 and b"left out" in done.stdout, done.stderr
