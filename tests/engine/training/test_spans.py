"""Test of the spans of a real training: run, steps, phases, and the calls to actors in these."""

from __future__ import annotations

import pytest

from engine.config import tracing
from engine.events.log import read_all
from engine.run.spans import run_span
from tests.engine.training.in_process import a_trainer
from tests.helpers.collector import a_collector
from tests.helpers.policies import tiny_config, tiny_policy

pytestmark = [pytest.mark.slow, pytest.mark.large]
STEPS = 2


def test_a_run_is_one_trace_of_steps_phases_and_calls(tmp_path, ray_address, monkeypatch):
    model = tiny_policy(tmp_path / "model", 1)
    training = {"steps": STEPS, "trees_per_step": 2, "validate_every": 9, "checkpoint_every": 2}
    problems = {"seed": 3, "train": 20, "validation": 2, "test": 0}
    config = tiny_config(model, training=training, problems=problems)
    with a_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with a_trainer(tmp_path / "run", config, ray_address) as trainer, run_span("train", "run"):
            trainer.run()
        spans = collector.spans()
    assert not tracing.is_on()
    tree = collector.tree()
    assert tree[""] == ["train"] and tree["train"] == ["step"]
    phases = {"generate", "verify", "credit", "learn", "sync", "validate", "checkpoint"}
    assert set(tree["step"]) == phases
    assert {"answer"} <= set(tree["generate"]) and "verify" in tree["verify"]
    assert tree["learn"] == ["learn"] and tree["checkpoint"] == ["save"]
    assert {"generate", "verify"} <= set(tree["validate"])
    assert len({one.trace for one in spans}) == 1 and not any(one.is_error for one in spans)
    ended = [event.payload for event in read_all(tmp_path / "run") if event.kind == "step.end"]
    steps = {one.id: one for one in spans if one.name == "step"}
    assert sorted(one.attributes["grove.step"] for one in steps.values()) == [1, STEPS]
    assert all(one.seconds > 0 for one in spans)
    for one in spans:
        if one.parent in steps and one.name in ("credit", "learn", "validate"):
            measured = ended[steps[one.parent].attributes["grove.step"] - 1]["phases"][one.name]
            assert one.attributes["grove.phase.seconds"] == pytest.approx(measured)
