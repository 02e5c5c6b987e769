"""Tests that the benchmark table has the program's conditions, goals, repeats and digest."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.conditions import commit, load, machine
from benchmarks.record import Measurement, NotWritten, Record, check_written, load_record
from benchmarks.row_names import ROWS
from benchmarks.table import document
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
LOAD = {"average": 0.25, "busy_percent": 3.0}
SLOW = Measurement(
    "sandbox", "2026-11-23 04:00:00", 12.3, "Processor, 2 cores", "abc1234", LOAD,
    {"average": 2.5, "busy_percent": 4.0}, about="What it compares.",
    goals={
        "vs_fresh_python": {"value": 2.5, "least": True},
        "vs_manager": {"value": 10, "least": True},
        "vs_bwrap_python": {"value": 4, "least": True},
    },
    ratios={"vs_fresh_python": 6.5, "vs_manager": 9.0, "vs_other": 2},
    figures={"sandbox_ms": 2.4, "ways": {"a|b": [1, 2]}},
    versions={"python": "3.12"},
)  # fmt: skip
FAST = replace(SLOW, measured_at="2026-11-23 05:00:00", ratios={**SLOW.ratios, "vs_manager": 11.0})


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", "all", "--json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120 * patience())


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def rows(page, name):
    """Cells of the rows of a measurement, in its section."""
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    table = section.partition("| row | measured |")[2].partition("\n\n")[0]
    return [cells(line) for line in table.splitlines()[2:]]


def summary(page):
    """Cells of the table at the top."""
    table = page.partition("| what | against |")[2].partition("\n\n")[0]
    return [cells(line) for line in table.splitlines()[2:]]


def written(folder, *measurements):
    """The page of a record with these measurements, as the program writes it."""
    page, record = folder / "benchmarks.md", Record(list(measurements))
    record.save(folder / "benchmarks.json")
    page.write_text(document(record), "utf-8")
    return page


def test_the_table_of_the_docs_was_written_by_the_program():
    assert check_written(PAGE).measurements


def test_a_row_has_its_goal_and_its_conditions():
    page = document(Record([SLOW]))
    good, missed, other, absent = rows(page, "sandbox")
    assert good == ["`vs_fresh_python`", "6.5", "at least 2.5", "met"]
    assert missed[:4] == ["`vs_manager`", "9.0", "at least 10", "missed"]
    assert other[:4] == ["`vs_other`", "2", "", ""]
    assert absent[:4] == ["`vs_bwrap_python`", "", "at least 4", "not measured"]
    for condition in (
        "| measured | 2026-11-23 04:00:00, in 12 s |",
        "| load, before and after | 0.25, 3 % → 2.5, 4 % |",
        "| machine | Processor, 2 cores |",
        "| versions | grove abc1234, python 3.12 |",
    ):
        assert condition in page.splitlines()
    assert "| `ways` | a\\|b: 1, 2 |" in page and "What it compares." in page
    assert "Not measured yet: search, expansion" in page


def test_the_table_at_the_top_says_what_against_whom_and_whether_the_goal_is_met():
    page = document(Record([SLOW]))
    assert page.index("| what | against |") < page.index("## sandbox") < page.index("SHA-256")
    good, missed, other = summary(page)
    assert good == ["[verify right programs](#sandbox)", "a fresh Python per program", "6.5",
                    "at least 2.5", "met", "2026-11-23"]  # fmt: skip
    assert missed[2:5] == ["9.0", "at least 10", "missed"]
    assert other == ["[`vs_other`](#sandbox)", "", "2", "", "", "2026-11-23"]
    assert "Without a value: sandbox `vs_bwrap_python`." in page
    failed = replace(SLOW, ratios={}, goals={}, failed="it took more than 20 minutes")
    (row,) = summary(document(Record([failed])))
    assert row == ["[sandbox](#sandbox)", "", "", "", "failed", "2026-11-23"]
    (row, *_) = summary(document(Record([replace(SLOW, options="--rounds 1")])))
    assert row[4] == "met, with options"


def test_every_row_of_the_docs_has_a_plain_name_and_no_name_is_without_a_row():
    rows = {(one.name, row) for one in check_written(PAGE).measurements for row in one.rows()}
    assert rows == {(name, row) for name, named in ROWS.items() for row in named}
    widest = max(map(len, PAGE.read_text("utf-8").partition("\n## ")[0].splitlines()))
    assert widest < 150, "a line of the table at the top fits into a browser"


def test_a_row_that_is_measured_again_keeps_the_earlier_one():
    page = document(Record([SLOW, FAST]))
    assert rows(page, "sandbox")[1][1:] == ["11.0", "at least 10", "met"]
    was = "| `vs_manager` | 9.0 | missed | 2026-11-23 04:00 | 0.25, 3 % | abc1234 |"
    assert was in page.splitlines() and "| row | earlier |" not in document(Record([SLOW]))


def test_a_failure_does_not_hide_what_was_measured_before():
    failed = replace(FAST, ratios={}, figures={}, failed="it took more than 20 minutes")
    page = document(Record([SLOW, failed]))
    assert rows(page, "sandbox")[0][3] == "failed"
    was = "| `vs_fresh_python` | 6.5 | met | 2026-11-23 04:00 | 0.25, 3 % | abc1234 |"
    assert was in page.splitlines()
    assert "Failed: it took more than 20 minutes" in page


def test_every_measurement_of_the_docs_names_its_conditions():
    for one in check_written(PAGE).measurements:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one.measured_at)
        assert one.machine and one.commit and one.seconds > 0
        assert one.load_before.keys() == one.load_after.keys() == LOAD.keys()
        assert one.versions or one.failed or one.left_out, one.name


@pytest.mark.parametrize(
    "forge",
    [
        lambda page, record: (page.replace("9.0", "10.1"), record),
        lambda page, record: (
            "\n".join(x for x in page.splitlines() if "vs_manager" not in x),
            record,
        ),
        lambda page, record: (page.replace("missed", "met"), record),
        lambda page, record: (page, record.replace("9.0", "10.1")),
        lambda page, record: (page.replace("9.0", "10.1"), record.replace("9.0", "10.1")),
        lambda page, record: (page.replace("0.25", "0.01"), record.replace("0.25", "0.01")),
    ],
    ids=["number", "row", "verdict", "record", "both", "load"],
)
def test_a_table_changed_by_hand_is_refused(tmp_path, forge):
    page = written(tmp_path, SLOW)
    assert check_written(page).measurements == [SLOW]
    record = page.with_suffix(".json")
    before = page.read_text("utf-8"), record.read_text("utf-8")
    after = forge(*before)
    assert after != before
    page.write_text(after[0], "utf-8")
    record.write_text(after[1], "utf-8")
    with pytest.raises(NotWritten):
        check_written(page)


def test_a_measurement_that_was_dropped_from_both_is_refused(tmp_path):
    page = written(tmp_path, SLOW, FAST)
    record = page.with_suffix(".json")
    content = json.loads(record.read_text("utf-8"))
    del content["measurements"][0]
    record.write_text(json.dumps(content), "utf-8")
    with pytest.raises(NotWritten, match="digest"):
        check_written(page)
    done = run("--only", "search", "--out", str(page))  # it does not resume from that record either
    assert done.returncode == 1 and "digest" in done.stderr


def test_one_that_does_not_end_is_named_in_the_table_and_by_the_exit_status(tmp_path):
    page = written(tmp_path, SLOW)
    done = run("--only", "sandbox", "--minutes", "0.0001", "--out", str(page))
    assert done.returncode == 1
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["name"], result["ratios"]) == ("all", {})
    assert "minutes" in result["figures"]["failed"]["sandbox"]
    first, second = check_written(page).measurements
    assert first == SLOW and second.failed and second.commit == commit()
    assert "| at least 2.5 | failed |" in page.read_text("utf-8")


@pytest.mark.large
def test_goals_that_were_missed_end_all_with_a_status_of_their_own(tmp_path):
    assert SLOW.missed() == ["sandbox: vs_manager is 9.0, the goal is at least 10"]
    assert FAST.missed() == []
    # Answers that take no time: all time is bookkeeping, measured in turns, so at least one goal is
    # missed; which one depends on the machine's load.
    page, options = tmp_path / "benchmarks.md", "--trees 1 --median 0.00001"
    done = run("--only", "expansion", f"--with={options}", "--out", str(page))
    assert done.returncode == 4, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    (one,) = check_written(page).measurements
    missed = [name for name in one.goals if one.judged(name) == "missed"]
    assert missed and result["figures"]["missed"] == one.missed() and one.load_after["average"] >= 0
    for name in missed:
        assert f"missed: expansion: {name} is {one.ratios[name]}" in done.stderr
        assert f"the goal is {one.goal(name)}" in done.stderr
        table = rows(page.read_text("utf-8"), "expansion")
        assert [row[3] for row in table if row[0] == f"`{name}`"] == ["missed"]
    assert f"| options | `{options}` |" in page.read_text("utf-8").splitlines()


def test_the_page_is_regenerated_from_only_the_record(tmp_path):
    page = written(tmp_path, SLOW, FAST)
    before = page.read_text("utf-8")
    page.write_text("lost", "utf-8")
    done = run("--render", "--out", str(page))
    assert done.returncode == 0, done.stderr
    assert page.read_text("utf-8") == before
    assert load_record(page.with_suffix(".json")).measurements == [SLOW, FAST]


def test_conditions_are_of_this_machine():
    assert "cores, Python 3" in machine()
    now = load()
    assert now.average >= 0 and 0 <= now.busy_percent <= 100


def test_a_commit_with_changes_is_not_called_that_commit(tmp_path):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    assert commit(tmp_path) == "no repository"
    git("init", "-q")
    (tmp_path / "docs").mkdir()
    for name in ("code.py", "docs/benchmarks.md"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    clean = commit(tmp_path)
    assert re.fullmatch("[0-9a-f]{10}", clean)
    (tmp_path / "docs" / "benchmarks.md").write_text("2")
    assert commit(tmp_path) == clean
    (tmp_path / "code.py").write_text("2")
    assert commit(tmp_path) == f"{clean}+changes"
