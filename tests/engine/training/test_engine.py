"""Tests of the real engine as a process: Ray, a policy, the sandbox; stop, resume, refusal."""

import json
import os
import subprocess
import sys

import pytest

from engine.config.schema import RunConfig
from engine.events.log import read_all
from engine.run.exit_status import ExitCode
from tests.engine.problems import rows
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.waiting import eventually, patience

pytestmark = pytest.mark.slow
DEADLINE = 400


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "a", 1)


def start(run_dir, address=""):
    """The engine as a process; without an address it starts a Ray of its own."""
    with (run_dir / "engine.log").open("ab") as log:
        command = [sys.executable, "-m", "engine", "train", str(run_dir), "--json"]
        environment = os.environ | {"RAY_ADDRESS": address}
        return subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )


def prepare(run_dir, config: RunConfig):
    run_dir.mkdir()
    (run_dir / "config.json").write_text(config.model_dump_json())
    return run_dir


def events(run_dir, kind=None):
    return [e for e in read_all(run_dir) if kind in (None, e.kind)]


def finished_steps(run_dir):
    """Steps as a reader of the log counts them: a resume voids what came after its checkpoint."""
    steps = []
    for event in read_all(run_dir):
        if event.kind == "run.resumed":
            steps = [s for s in steps if s <= event.payload["step"]]
        elif event.kind == "step.end":
            steps.append(event.payload["step"])
    return steps


def test_a_stopped_run_on_a_published_file_goes_on_and_says_what_it_left_out(
    model, tmp_path, ray_address
):
    file = tmp_path / "acecode.json"
    without_tests = {**rows.ACECODE, "test_cases": []}
    good = [{**rows.ACECODE, "id": f"oss_{n}", "question": f"{n}: triple it."} for n in range(9)]
    wrong = {**rows.ACECODE, "id": "wrong", "question": "Triple a number."}
    wrong["inferences"] = [{"completion": "def triple(x): return x", "pass_rate": 1.0}]
    file.write_text(json.dumps([*good, without_tests, wrong]))
    training = {"steps": 8, "trees_per_step": 4, "validate_every": 99, "checkpoint_every": 99}
    problems = {"dataset": str(file), "train": 8, "validation": 0, "test": 2}
    config = tiny_config(model, training=training, problems=problems)
    run_dir = prepare(tmp_path / "run", config)

    stopped = start(run_dir, ray_address)
    eventually(lambda: 2 in finished_steps(run_dir), "step 2 to end", DEADLINE)
    stopped.terminate()
    assert stopped.wait(DEADLINE * patience()) == ExitCode.STOPPED
    reached = finished_steps(run_dir)[-1]
    assert 2 <= reached < 8

    last = start(run_dir, ray_address)
    assert last.wait(DEADLINE * patience()) == 0, (run_dir / "engine.log").read_text()[-3000:]
    log = events(run_dir)
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert finished_steps(run_dir) == list(range(1, 9))
    # No checkpoint was due before: it stopped with one of its last whole step.
    assert [e.payload["step"] for e in events(run_dir, "run.resumed")] == [reached]
    lines = [event.payload["message"] for event in events(run_dir, "log.line")]
    unread, failing, *again = [line for line in lines if "left out" in line]
    assert again == [unread, failing]
    assert f"{file}:10: test_cases" in unread
    assert f"{file}:11: reference = 'wrong': its own reference ends as wrong_answer" in failing
    named = {event.payload["problem"] for event in events(run_dir, "tree.open")}
    assert named <= {row["id"] for row in good}


def test_an_impossible_run_is_refused_before_anything_starts(model, tmp_path):
    config = tiny_config(model, tmp_path / "nowhere")
    run_dir = prepare(tmp_path / "run", config)
    process = start(run_dir)
    assert process.wait(DEADLINE * patience()) == 2
    assert "nowhere is not a directory" in (run_dir / "engine.log").read_text()
    assert not (run_dir / "events.jsonl").exists()
