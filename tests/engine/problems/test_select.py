"""Tests of `problems select`: what is selected, what is left out, and how it continues."""

import json
from dataclasses import replace

import pytest

from engine.__main__ import main
from engine.config.problems import ProblemsConfig
from engine.evaluation.measurement import Measurement
from engine.evaluation.selection import Attempts, Selection, Source, overlaps_with, read_attempts
from engine.events import vocabulary
from engine.events.vocabulary import StopReason, Verdict
from engine.policy.types import Answer, Generation
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.identity import content_hash
from engine.problems.jsonl import load_problems, save_problems
from engine.problems.source import load_problem_set
from engine.sandbox.host.verify import Verification
from tests.engine.problems import rows

PROBLEMS = GeneratedProblems(5).first(Split.TRAIN, 6)


def judged(passes):
    """A sample that passes, fails, or (None) could not be verified."""
    verdict = {1: Verdict.PASSED, 0: Verdict.WRONG_ANSWER, None: Verdict.SANDBOX_FAILURE}[passes]
    generation = Generation((), (1,), (0.0,), StopReason.END_OF_TEXT, 0, 0.0)
    reports = (vocabulary.TestReport(Verdict.PASSED, "1", "2"),)
    return Answer(generation, "x"), Verification(verdict, 0.5, reports, 1, False)


def select(tmp_path, *options):
    """(exit status, report) of a selection by a starter among generated problems."""
    out = tmp_path / "out.jsonl"
    status = main(
        ["problems", "select", "--agents", "starter:oak", "--dataset", "generated", "--samples",
         "4", "--out", str(out), *options, "--set", "problems.seed=5",
         "agents.oak.sampling.max_new_tokens=48"]
    )  # fmt: skip
    return status, json.loads((tmp_path / "out.jsonl.report.json").read_text())


def test_a_starter_selects_what_it_solves_sometimes_and_continues(tmp_path, capsys):
    near = replace(PROBLEMS[1], id="near", statement=PROBLEMS[1].statement.upper() + " !")
    tests = tmp_path / "tests.jsonl"
    save_problems(tests, [PROBLEMS[0], near])
    options = ("--problems", "12", "--apart-from", str(tests), "--json")
    status, report = select(tmp_path, *options)
    by_id = {row["id"]: row for row in report["problems"]}
    assert len(by_id) == 12
    for problem, kind in ((PROBLEMS[0], "problem"), (PROBLEMS[1], "statement")):
        row = by_id.pop(problem.id)
        assert row["outcome"] == "contaminated" and "tried" not in row
        assert (row["overlap"]["kind"], row["overlap"]["path"]) == (kind, str(tests))
    for row in by_id.values():
        assert row["tried"] == 4 and row["pass@1"] == row["passed"] / 4
        assert (row["outcome"] == "selected") == (0 < row["passed"] < 4)
    selected = [name for name, row in by_id.items() if row["outcome"] == "selected"]
    out = tmp_path / "out.jsonl"
    assert status == 0 and [one.id for one in load_problems(out)] == selected
    totals = json.loads(capsys.readouterr().out)
    assert totals == {"out": str(out), **report["totals"]}
    assert (totals["selected"], totals["contaminated"], totals["pending"]) == (len(selected), 2, 0)
    config = ProblemsConfig(dataset=str(out), validation=0, test=0)
    assert len(load_problem_set(config).train) == len(selected)

    # As if it had been interrupted: one outcome is known, and no other.
    kept = next(iter(by_id))
    for row in report["problems"]:
        if row["id"] != kept and "tried" in row:
            del row["tried"], row["passed"]
        elif row["id"] == kept:
            row |= {"passed": 1, "tried": 3}
    file = tmp_path / "out.jsonl.report.json"
    file.write_text(json.dumps(report))
    _, again = select(tmp_path, *options)
    tried = {row["id"]: row["tried"] for row in again["problems"] if "tried" in row}
    assert tried == dict.fromkeys(by_id, 4) | {kept: 3}
    assert kept in [one.id for one in load_problems(out)]


def test_outcomes_depend_on_the_samples_of_all_agents():
    first, second = (
        [[judged(one) for one in row] for row in rows]
        for rows in (
            [[1, 1], [0, 0], [1, 1], [None, None], [0, 0]],
            [[1, 1], [0, 0], [0, None], [None, None], [0, 1]],
        )
    )
    measured = PROBLEMS[:5]
    source = Source("a", PROBLEMS)
    selection = Selection([source, Source("b", PROBLEMS[:1])], {})
    selection.add(Measurement(measured, {"one": first, "two": second}))
    outcomes = [row["outcome"] for row in selection.report({})["problems"]]
    assert outcomes == [
        "always solved", "never solved", "selected", "unverified", "selected", "pending",
        "repeated",
    ]  # fmt: skip
    assert selection.pending() == [PROBLEMS[5]]
    assert selection.selected() == [PROBLEMS[2], PROBLEMS[4]]
    assert selection.attempts[content_hash(PROBLEMS[2])] == Attempts(2, 3)


def test_the_first_overlapping_test_set_is_reported():
    sources = [Source("train", PROBLEMS)]
    tests = [Source("one", PROBLEMS[3:4]), Source("two", PROBLEMS[2:4])]
    overlaps = overlaps_with(sources, tests, 0.5)
    paths = {content: path for content, (path, _) in overlaps.items()}
    assert paths == {content_hash(PROBLEMS[3]): "one", content_hash(PROBLEMS[2]): "two"}
    assert Selection(sources, overlaps).pending() == [*PROBLEMS[:2], *PROBLEMS[4:]]


def test_a_report_of_other_settings_is_not_continued(tmp_path):
    file = tmp_path / "report.json"
    assert read_attempts(file, {}) == {}
    selection = Selection([Source("a", PROBLEMS)], {}, {content_hash(PROBLEMS[0]): Attempts(1, 2)})
    about = {"samples": 8, "agents": {"oak": "starter:oak"}}
    file.write_text(json.dumps(selection.report(about)))
    assert read_attempts(file, about) == selection.attempts
    with pytest.raises(ValueError, match=r"its samples differ .* name another file"):
        read_attempts(file, about | {"samples": 4})
    file.write_text("[1]")
    with pytest.raises(ValueError, match="is no report of `problems select`"):
        read_attempts(file, about)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--apart-from", "generated"], "generated problems have splits of their own"),
        (["--report", "OUT"], "is also --out"),
        (["--dataset", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sampled(tmp_path, capsys, options, message):
    given = tmp_path / "given.jsonl"
    given.write_text(json.dumps(rows.MBPP) + "\n")
    out = tmp_path / "out.jsonl"
    options = [str(out) if option == "OUT" else option for option in options]
    command = ["problems", "select", "--agents", "starter:oak", "--dataset", str(given), "--out"]
    assert main([*command, str(out), *options]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
