"""Tests of the log of an evaluation's run."""

from __future__ import annotations

import json

import pytest

from engine.config.schema import parse_config
from engine.evaluation.run import evaluate_run
from engine.events.log import read_all
from engine.run.exit_status import ExitCode
from engine.run.failure import START
from tests.helpers.policies import tiny_policy

PROBLEMS, SAMPLES = 32, 4


@pytest.mark.large
def test_it_has_samples_of_the_system_while_it_measures(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    model = str(tiny_policy(tmp_path / "elm"))
    config = parse_config(
        {
            "agents": [{"name": "elm", "model": model, "sampling": {"max_new_tokens": 128}}],
            "problems": {"train": 1, "validation": 0, "test": PROBLEMS},
            "loss": {"kl_coefficient": 0.0},
            "evaluation": {"samples_per_problem": SAMPLES},
            "compute": {"device": "cpu"},
        }
    )
    (run_dir / "config.json").write_text(config.model_dump_json())
    assert evaluate_run(run_dir) == ExitCode.FINISHED
    events = list(read_all(run_dir))
    kinds = [event.kind for event in events]
    (running,) = [e for e in events if e.kind == "run.state" and e.payload["state"] == "running"]
    assert kinds.index("system.sample") > events.index(running)
    assert events[kinds.index("system.sample")].payload["memory_mb"] > 0
    lines = [e.payload["message"] for e in events if e.kind == "log.line"]
    assert any("tier of the sandbox's walls" in line for line in lines)
    assert kinds[-2:] == ["eval.outcomes", "run.state"]


@pytest.mark.large
def test_a_failure_is_recorded_with_its_phase_and_traceback(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    row = {"question": "Add them. " * 400, "input_output": '{"inputs": ["1"], "outputs": ["1"]}'}
    dataset = tmp_path / "long.jsonl"
    dataset.write_text(json.dumps(row) + "\n")
    model = str(tiny_policy(tmp_path / "elm"))
    config = parse_config(
        {
            "agents": [{"name": "elm", "model": model, "sampling": {"max_prompt_tokens": 64}}],
            "problems": {"dataset": str(dataset), "train": 1, "validation": 0, "test": 1},
            "evaluation": {"samples_per_problem": 1},
            "compute": {"device": "cpu"},
        }
    )
    (run_dir / "config.json").write_text(config.model_dump_json())
    assert evaluate_run(run_dir) == ExitCode.FAILED
    *_, error, state = read_all(run_dir)
    assert error.payload["message"].startswith("ValueError: no problem is left")
    assert error.payload["phase"] == START and "Traceback" in error.payload["traceback"]
    assert state.payload["state"] == "failed"
