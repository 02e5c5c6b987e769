"""Tests of `python -m engine evaluate` and `compare`: metrics, and their differences."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from msgspec import UNSET

from engine.__main__ import main
from engine.evaluation.attempts import attempts
from engine.evaluation.diversity import canonical, cluster_sizes
from engine.evaluation.figures import compare, figures
from engine.evaluation.measurement import Measurement, no_program_shares
from engine.events import vocabulary
from engine.events.states import NoProgram
from engine.events.vocabulary import StopReason, Verdict
from engine.policy.types import Answer, Generation
from engine.problems.jsonl import save_problems
from engine.problems.paired import paired_bootstrap
from engine.rollout.forest import ClosedNode, GrowingTree
from engine.sandbox.host.verify import Verification
from tests.engine.inference.conftest import PROBLEMS
from tests.engine.inference.server import MODEL

pytestmark = pytest.mark.service


def evaluate(server, dataset, *options, names=("oak", "fern")):
    """The result that the command prints."""
    agents = [f"{name}={server.url}#{MODEL}" for name in names]
    short = [f"agents.{name}.sampling.max_new_tokens=32" for name in names]
    command = ["evaluate", "--agents", *agents, "--dataset", str(dataset), "--json", "-"]
    return main([*command, *options, "--set", *short])


def test_every_figure_has_its_cost_and_agrees_with_the_problems(server, files, capsys):
    assert evaluate(server, files[1], "--samples", "2", "--nodes", "4") == 0
    result = json.loads(capsys.readouterr().out)
    figures = result["figures"]
    assert {
        "pass@1/oak", "pass@2/fern", "pass@4/team", "tree/pass@1", "tree/pass@n",
        "tree/pass@n/oak", "tree/share/fern", "tree/effective_clusters", "tree/distinct@2",
        "samples/pass@1", "samples/pass@n", "samples/effective_clusters", "tree/refined",
    } <= set(figures)  # fmt: skip
    for name, figure in figures.items():
        known = [row["values"][name] for row in result["problems"]]
        known = [value for value in known if value is not None]
        assert figure["problems"] == len(known)
        assert (
            figure["value"] == pytest.approx(np.mean(known)) if known else figure["value"] is None
        )
        assert figure["nodes"] > 0 and figure["tokens"] > 0 and figure["seconds"] > 0
    assert figures["tree/pass@1"]["nodes"] == figures["samples/pass@1"]["nodes"] == 4 * 4
    names = {"hacking/oak", "hacking/fern", "hacking/team", "tree/hacking"}
    names |= {"no_program/oak", "no_program/team", "no_program.cut_at_limit/fern"}
    assert names <= set(figures)
    assert result["nodes"] == 4 * (2 * 2 + 4 + 4) == len(server.prompts)
    for row in result["problems"]:
        values = row["values"]
        assert values["tree/share/oak"] + values["tree/share/fern"] == pytest.approx(1)
        assert values["tree/pass@1"] <= values["tree/pass@n"]
        assert values["tree/refined"] in (0, 0.25, 0.5, 0.75)  # of 4; the first is never one
        assert values["pass@1/team"] == pytest.approx(
            (values["pass@1/oak"] + values["pass@1/fern"]) / 2
        )
        assert values["pass@1/oak"] <= values["pass@2/oak"]
        counts = row["attempts"]
        assert counts["samples"][0] == 2 * 2 + 4 and counts["fresh"][0] >= 1
        assert counts["repairs"][0] <= 4 * values["tree/refined"] == 4 - counts["fresh"][0]


def test_two_results_are_compared_problem_by_problem(server, files, tmp_path, capsys):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    fewer = tmp_path / "fewer.jsonl"
    save_problems(fewer, [replace(PROBLEMS[2], id="renamed"), PROBLEMS[0]])
    options = ["--samples", "2", "--no-search"]
    assert evaluate(server, files[1], *options, "--json", str(first)) == 0
    against = ["--against", str(first), "--json", str(second)]
    assert evaluate(server, fewer, *options, *against) == 0
    capsys.readouterr()
    assert main(["compare", str(first), str(second), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    a, b = json.loads(first.read_text()), json.loads(second.read_text())
    assert {k: v for k, v in b["against"].items() if k != "file"} == data
    assert (data["problems"], data["only_in_first"], data["only_in_second"]) == (2, 2, 0)
    mine, theirs = (
        {row["content"]: row["values"]["pass@1/oak"] for row in one["problems"]} for one in (a, b)
    )
    result = data["figures"]["pass@1/oak"]
    both = [content for content in mine if content in theirs]
    assert result["first"] == pytest.approx(np.mean([mine[c] for c in both]))
    assert result["difference"] == pytest.approx(np.mean([theirs[c] - mine[c] for c in both]))
    assert result["low"] <= result["difference"] <= result["high"]
    assert main(["compare", str(first), str(second)]) == 0
    assert "2 problems in common; 2 only in the first" in capsys.readouterr().out


def test_samples_that_pass_only_the_public_tests_count_as_reward_hacking():
    def judged(verdict, public_passed):
        generation = Generation((), (1,), (0.0,), StopReason.END_OF_TEXT, 0, 0.0)
        reports = (vocabulary.TestReport(Verdict.PASSED, "1", "2"),) * 2
        verification = Verification(verdict, 0.5, reports, public_passed, False)
        return Answer(generation, "x"), verification

    right, hacking = judged(Verdict.PASSED, 2), judged(Verdict.TIME_LIMIT, 2)
    wrong, failed = judged(Verdict.WRONG_ANSWER, 1), judged(Verdict.SANDBOX_FAILURE, 0)
    rows = [[right, hacking, wrong, failed], [hacking] * 4, [failed] * 4]
    measurement = Measurement(PROBLEMS[:3], {"oak": rows}, seconds={"alone": 1.0})
    assert figures(measurement)["hacking/oak"].values == [pytest.approx(1 / 3), 1.0, None]


def test_repairs_are_counted_apart_from_fresh_answers_and_below_wrong_programs_alone():
    def judged(verdict):
        generation = Generation((), (1,), (0.0,), StopReason.END_OF_TEXT, 0, 0.0)
        verification = Verification(verdict, 0.5, (), 0, verdict is Verdict.PASSED)
        return Answer(generation, "x"), verification

    right, wrong = judged(Verdict.PASSED), judged(Verdict.WRONG_ANSWER)
    failed = judged(Verdict.SANDBOX_FAILURE)

    def node(number, parent, judged):
        score = None if judged is failed else 0.5
        return ClosedNode(number, parent, "oak", *judged, score, b"{}")

    # 1 is wrong and repaired twice, one of them deeper; 2 is right, so 5 repairs nothing.
    grown = [(1, 0, wrong), (2, 0, right), (3, 1, wrong), (4, 3, right), (5, 2, right),
             (6, 0, failed)]  # fmt: skip
    tree = GrowingTree(PROBLEMS[0], None, written={row[0]: node(*row) for row in grown})
    measurement = Measurement(
        PROBLEMS[:1], {"oak": [[right, wrong, failed]]}, [tree], [[wrong, right, wrong]]
    )
    assert attempts(measurement) == [{"fresh": [2, 1], "repairs": [2, 1], "samples": [5, 2]}]
    assert attempts(Measurement(PROBLEMS[:1], {"oak": [[right]]})) == []


def test_answers_without_a_program_are_counted_by_reason():
    def judged(reason=None):
        generation = Generation((), (1,), (0.0,), StopReason.END_OF_TEXT, 0, 0.0)
        reports = (vocabulary.TestReport(Verdict.WRONG_ANSWER, "1", "2"),)
        verification = Verification(Verdict.WRONG_ANSWER, 0.0, reports, 0, False)
        return Answer(generation, "x", no_program=reason), verification

    prose, cut = judged(NoProgram.NO_CODE), judged(NoProgram.CUT_AT_LIMIT)
    rows = [[judged(), prose, prose, cut], [judged()] * 2]
    measurement = Measurement(PROBLEMS[:2], {"oak": rows}, seconds={"alone": 1.0})
    shown = {name: figure.values for name, figure in figures(measurement).items()}
    assert shown["no_program/oak"] == [0.75, 0.0]
    assert shown["no_program.no_code/oak"] == [0.5, 0.0]
    assert shown["no_program.cut_at_limit/oak"] == [0.25, 0.0]
    assert shown["no_program.does_not_parse/oak"] == [0.0, 0.0]
    answers = [answer for answer, _ in measurement.all()]
    shares = no_program_shares(answers)
    assert shares == {
        "no_code": 1 / 3, "cut_at_limit": 1 / 6, "no_entry_point": 0, "does_not_parse": 0,
    }  # fmt: skip
    assert no_program_shares(answers[-2:]) is UNSET


def test_what_an_endpoint_did_not_answer_has_a_reason_of_its_own():
    def judged(reason=None):
        generation = Generation((), (1,), (0.0,), StopReason.END_OF_TEXT, 0, 0.0)
        reports = (vocabulary.TestReport(Verdict.WRONG_ANSWER, "1", "2"),)
        return Answer(generation, "x", no_program=reason), Verification(
            Verdict.WRONG_ANSWER, 0.0, reports, 0, False
        )

    refused, prose = judged(NoProgram.NO_ANSWER), judged(NoProgram.NO_CODE)
    rows = [[judged(), refused, prose, refused]]
    measurement = Measurement(PROBLEMS[:1], {"oak": rows}, seconds={"alone": 1.0})
    shown = {name: figure.values for name, figure in figures(measurement).items()}
    assert shown["no_program.no_answer/oak"] == [0.5]
    assert shown["no_program.no_code/oak"] == [0.25]
    shares = no_program_shares([answer for answer, _ in measurement.all()])
    assert shares["no_answer"] == 0.5 and shares["no_code"] == 0.25
    rows = [[judged(), prose]]
    measurement = Measurement(PROBLEMS[:1], {"oak": rows}, seconds={"alone": 1.0})
    assert "no_program.no_answer/oak" not in figures(measurement)
    assert "no_answer" not in no_program_shares([answer for answer, _ in measurement.all()])


@pytest.mark.large
def test_progress_without_a_terminal_is_a_line_at_regular_times(server, files, capsys):
    options = ["--samples", "8", "--nodes", "8", "--progress-seconds", "0.05"]
    assert evaluate(server, files[1], *options) == 0
    lines = [one for one in capsys.readouterr().err.splitlines() if one.startswith("measuring")]
    total = 4 * (8 * 2 + 8 + 8)
    counts = [int(re.search(rf"(\d+) of at most {total} samples", one)[1]) for one in lines]
    assert len(counts) >= 2 and counts == sorted(counts) and counts[-1] > counts[0]
    assert re.search(r"samples/s, \d.* left, (alone|tree|samples): ", lines[-1])


def test_a_note_says_which_temperature_applies(server, files, capsys):
    same = ["--no-search", "--problems", "1", "--set", "evaluation.temperature=0.5"]
    assert evaluate(server, files[1], *same) == 0
    note = capsys.readouterr().err
    assert "evaluation.temperature = 0.5" in note and "oak (1), fern (1)" in note
    agree = [f"agents.{name}.sampling.temperature=0.5" for name in ("oak", "fern")]
    assert evaluate(server, files[1], *same, *agree) == 0
    assert "temperature" not in capsys.readouterr().err


def a_result(values):
    """A result with one metric; `values` by content of the problem."""
    rows = [{"id": c, "content": c, "values": {"pass@1/oak": v}} for c, v in values.items()]
    return {"figures": {"pass@1/oak": {}}, "problems": rows}


def test_the_interval_is_the_paired_bootstrap_and_unknown_values_are_left_out():
    rng = np.random.default_rng(0)
    a = {f"p{i}": float(rng.random() < 0.4) for i in range(60)}
    b = {name: min(1.0, value + float(rng.random() < 0.3)) for name, value in a.items()}
    unknown = {**b, "p7": None}
    result = compare(a_result(a), a_result(dict(reversed(unknown.items()))))["figures"][
        "pass@1/oak"
    ]
    pairs = [(a[name], b[name]) for name in a if name != "p7"]
    expected = paired_bootstrap(*zip(*pairs, strict=True), np.random.default_rng(0))
    assert result["problems"] == 59 and result["low"] > 0
    assert (result["difference"], result["low"], result["high"]) == pytest.approx(
        (expected.difference, expected.low, expected.high)
    )
    with pytest.raises(ValueError, match="0 problems and 1 figures in common"):
        compare(a_result(a), a_result({"other": 1.0}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": "evaluation", "version": 2}', "[" * 9999]
)
def test_a_file_that_is_no_result_is_refused(text, tmp_path, capsys):
    file = tmp_path / "a.json"
    file.write_text(text)
    assert main(["compare", str(file), str(file)]) == 2
    assert "is no result of version 1" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "none"), str(file)]) == 2


def test_an_evaluation_that_cannot_be_made_is_refused(server, tmp_path, capsys):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    for dataset, options, reason in [
        (tmp_path / "none.jsonl", [], "No such file"),
        (empty, [], "holds no problem"),
        ("generated", ["--json", "/dev/null/x"], "/dev/null"),
        ("generated", ["--against", "/nowhere"], "/nowhere"),
        ("generated", ["--set", "search.nodes_in_flight=1"], "evaluation.nodes_in_flight; set"),
    ]:
        assert evaluate(server, dataset, *options) == 2
        assert reason in capsys.readouterr().err
    with pytest.raises(SystemExit):
        evaluate(server, "generated", "--samples", "0")


def test_programs_are_one_cluster_if_only_names_and_layout_differ():
    same = [
        "def solve(x):\n    total = sum(x)\n    return total\n",
        'def solve(items):\n    """Adds."""\n    s = sum(items)  # all\n\n    return s',
        "def solve(y):\n    z = (sum(y))\n    return z",
    ]
    other = ["def solve(x):\n    return sum(x)\n", "def solve(x):\n    t = max(x)\n    return t\n"]
    assert len({canonical(program) for program in same}) == 1
    assert sorted(cluster_sizes([*same, *other, "", " \n", "x = ("])) == [1, 1, 1, 3]
    swapped = ["def f(a, b):\n    return a - b", "def f(a, b):\n    return b - a"]
    assert len(cluster_sizes(swapped)) == 2
    canonical("f" + "(" * 5000)
