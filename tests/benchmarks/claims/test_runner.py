"""Tests of the command and its runner, with real engines where a test is slow."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks import __main__ as command
from benchmarks.claims.catalogue import BY_NAME, CLAIMS
from benchmarks.claims.cell import Cell, read_result, write_result
from benchmarks.claims.claim import Arm, Plan
from benchmarks.claims.figures import STEP_SECONDS
from benchmarks.claims.runner import run_cells
from benchmarks.claims.stages import Workplace
from engine.events.log import read_all
from tests.benchmarks.claims.builders import SHAPING, result_of
from tests.helpers.waiting import eventually, patience

TINY = Plan(steps=2, trees=2, problems=2, samples=2)


def test_the_claims_are_listed(capsys):
    assert command.main(["claims", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(claim.statement in listed for claim in CLAIMS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nothing"], "no such claim; choose from team"), (["team", "--arms", "x"], "no such arm")],
)
def test_an_unknown_claim_or_arm_is_refused(arguments, said, tmp_path, capsys):
    options = ["--work", str(tmp_path / "w"), "--results", str(tmp_path / "r")]
    assert command.main(["claims", *arguments, *options]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.json"))


def test_a_failed_cell_names_its_cause_and_the_others_go_on(tmp_path):
    impossible = Arm("impossible", "", settings={"agents.oak.model": "deeper:oak:1"})
    claim = replace(SHAPING, arms=(*SHAPING.arms, impossible))
    present = result_of(claim, "two-models", 1, TINY)
    write_result(tmp_path / "other" / "two-models-1.json", present)
    cells = [Cell(claim, claim.arm(name), 1, TINY) for name in ("impossible", "two-models")]
    lines = []
    done = run_cells(cells, tmp_path, Workplace(tmp_path / "work"), lines.append)
    assert list(done.failed) == ["shaping/impossible-1"]
    assert "layers = 1: the starter oak has 2" in done.failed["shaping/impossible-1"]
    assert done.copied == ["shaping/two-models-1"] and not done.measured
    assert read_result(cells[1].file(tmp_path)) == present
    assert "2 cells: 0 present, 2 to do" in lines[0] and "min left" in lines[-1]
    assert not cells[0].file(tmp_path).exists()


def test_a_stage_that_exceeds_its_limit_fails(tmp_path):
    claim = BY_NAME["tree-samples-starters"]
    cell = Cell(claim, claim.arm("tree-8"), 1, TINY)
    done = run_cells([cell], tmp_path, Workplace(tmp_path, minutes=0.001), lambda line: None)
    assert done.failed == {cell.name: "evaluation: it took more than 0.001 minutes (--minutes)"}


LONGER = ("thompson-search", "--arms", "thompson")
"""One training run and one evaluation, which the tests below share."""
NAME = "thompson-search/thompson-1"


def claims(folder, *arguments):
    options = ["--work", str(folder / "work"), "--results", str(folder / "results"), "--json"]
    size = ["--steps", "12", "--trees", "2", "--problems", "2", "--seeds", "1"]
    return [sys.executable, "-m", "benchmarks", "claims", *size, *arguments, *options]


def run(folder, *arguments):
    done = subprocess.run(
        claims(folder, *arguments), capture_output=True, text=True, timeout=500 * patience()
    )
    return done.returncode, json.loads(done.stdout.splitlines()[-1])["figures"], done.stderr


def trainings(folder):
    return sorted(folder.glob("work/train-*"))


def steps_of(folder):
    logs = trainings(folder)
    return sum(event.kind == "step.end" for event in read_all(logs[0])) if logs else 0


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Directory of a cell that was measured without an interruption."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    code, figures, progress = run(folder, *LONGER)
    assert (code, figures) == (0, {"present": 0, "measured": 1, "copied": 0}), progress
    return folder


def result_in(folder):
    return read_result(folder / "results" / f"{NAME}.json")


def untimed(result):
    """The figures that hang on no clock."""
    timed = ("seconds", STEP_SECONDS.name)
    return {name: value for name, value in result.figures.items() if name not in timed}


@pytest.mark.large
@pytest.mark.slow
def test_a_tiny_claim_is_measured_once(uninterrupted):
    first = result_in(uninterrupted)
    assert first.figures["tree/pass@1"] is not None and first.budget["nodes"] == 12 * 2 * 8
    assert first.budget["tree_answers"] == 2 * 16 and first.budget["learned_tokens"] > 0
    assert first.machine and first.grove and len(first.recipe_sha256) == 64
    assert run(uninterrupted, *LONGER)[:2] == (0, {"present": 1, "measured": 0, "copied": 0})
    file = uninterrupted / "results" / f"{NAME}.json"
    write_result(file, replace(first, digest="0" * 64))
    code, figures, progress = run(uninterrupted, *LONGER)
    assert (code, figures) == (0, {"present": 0, "measured": 1, "copied": 0})
    assert f"{NAME}: its result is of other settings; measuring it again" in progress
    assert result_in(uninterrupted).digest == first.digest


@pytest.mark.large
@pytest.mark.slow
def test_another_claim_has_the_same_training_and_its_failures_show(uninterrupted):
    trained = trainings(uninterrupted)
    reward_model = ["search-switches", "--arms", "reward-model", "--minutes", "0.001"]
    code, figures, progress = run(uninterrupted, *reward_model)
    assert code == 1, progress
    said = "reward model: it took more than 0.001 minutes (--minutes)"
    assert figures.pop("failed") == {"search-switches/reward-model-1": said}
    assert figures == {"present": 0, "measured": 0, "copied": 0}
    assert trainings(uninterrupted) == trained and steps_of(uninterrupted) == 12


@pytest.mark.large
@pytest.mark.slow
def test_an_interrupted_runner_goes_on_and_gets_the_same_figures(uninterrupted, tmp_path):
    for number, steps in ((signal.SIGTERM, 2), (signal.SIGKILL, 4)):
        runner = subprocess.Popen(claims(tmp_path, *LONGER), stderr=subprocess.DEVNULL)
        eventually(lambda at=steps: steps_of(tmp_path) >= at, f"{steps} steps", seconds=240)
        os.kill(runner.pid, number)
        assert runner.wait(timeout=120 * patience()) == (
            130 if number == signal.SIGTERM else -number
        )
        assert not list(tmp_path.glob("results/*/*"))
    code, _, progress = run(tmp_path, *LONGER)
    assert code == 0, progress
    result, expected = result_in(tmp_path), result_in(uninterrupted)
    assert untimed(result) == untimed(expected) and len(untimed(result)) > 15
    assert result.budget == expected.budget and result.digest == expected.digest
    assert result.resumed in (1, 2)  # an orphan may finish by itself


@pytest.mark.slow
@pytest.mark.large
def test_models_that_are_trained_apart_are_measured_as_one_team(tmp_path):
    claim = BY_NAME["papers-arms"]
    names = ("half-oak", "half-fern", "trained-apart")
    plan = Plan(steps=1, trees=4, problems=2, samples=2)
    cells = [Cell(claim, claim.arm(name), 1, plan) for name in names]
    done = run_cells(cells, tmp_path / "results", Workplace(tmp_path), lambda line: None)
    assert (done.failed, done.measured) == ({}, [cell.name for cell in cells])
    oak, fern, both = (read_result(cell.file(tmp_path / "results")) for cell in cells)
    for budget in ("nodes", "learned_tokens", "parameters"):
        assert both.budget[budget] == oak.budget[budget] + fern.budget[budget]
    assert both.budget["nodes"] == 32 and both.budget["tree_answers"] == 16
    assert both.figures["pass@1/oak"] is not None and both.figures["pass@1/fern"] is not None
    assert len(list(tmp_path.glob("train-*"))) == 2  # nothing was trained twice
