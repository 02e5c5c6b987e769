"""Tests of the log of an evaluation's run."""

from __future__ import annotations

import pytest

from engine.config.schema import parse_config
from engine.evaluation.run import evaluate_run
from engine.events.log import read_all
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
    assert evaluate_run(run_dir) == 0
    events = list(read_all(run_dir))
    kinds = [event.kind for event in events]
    (running,) = [e for e in events if e.kind == "run.state" and e.payload["state"] == "running"]
    assert kinds.index("system.sample") > events.index(running)
    assert events[kinds.index("system.sample")].payload["memory_mb"] > 0
    assert kinds[-2:] == ["eval.outcomes", "run.state"]
