"""Test of a recipe trained with vLLM as an agent's generator, through Ray, on this CPU."""

import os
import subprocess
import sys
import uuid

import psutil
import pytest

from engine.events.log import read_all
from engine.recipes import load_recipe
from tests.helpers.extras import needs_vllm
from tests.helpers.waiting import patience

DEADLINE = 400
MARK = "GROVE_TEST_MARK"


def small():
    overrides = {
        "agents.0.model": "starter:oak",
        "agents.0.generator.name": "vllm",
        "agents.0.generator.cpu_cache_gib": 0.1,
        "agents.1.model": "starter:fern",
        "problems.validation": 0,
        "problems.test": 2,
        "search.nodes_per_tree": 6,
        "search.nodes_in_flight": 3,
        "credit.dynamic_filter": False,
        "credit.overlong_buffer_tokens": 0,
        "training.steps": 3,
        "training.trees_per_step": 4,
        "training.checkpoint_every": 9,
        "evaluation.tree_nodes": 2,
        "sandbox.workers": 1,
        "compute.device": "cpu",
        "compute.dtype": "float32",
    }
    for number in range(2):
        overrides |= {
            f"agents.{number}.role": "",
            f"agents.{number}.sampling.max_prompt_tokens": 192,
            f"agents.{number}.sampling.max_new_tokens": 32,
            f"agents.{number}.optimizer.learning_rate": 3e-3,
            f"agents.{number}.optimizer.schedule": "constant",
            f"agents.{number}.optimizer.warmup_fraction": 0.0,
        }
    return load_recipe("mars2", overrides)


def marked(mark):
    """Descendants of the run, whatever their parent is now."""
    results = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                results.append(process)
        except psutil.Error:
            continue
    return results


@pytest.mark.large
@pytest.mark.slow
@needs_vllm
def test_a_recipe_trains_with_vllm_and_leaves_no_process(tmp_path):
    config, mark = small(), uuid.uuid4().hex
    (tmp_path / "config.json").write_text(config.model_dump_json())
    with (tmp_path / "engine.log").open("wb") as log:
        command = [sys.executable, "-m", "engine", "train", str(tmp_path)]
        environment = {**os.environ, MARK: mark}
        environment.pop("RAY_ADDRESS", None)
        done = subprocess.run(
            command,
            stdout=log,
            stderr=log,
            env=environment,
            timeout=DEADLINE * patience(),
            check=False,
        )
    assert done.returncode == 0, (tmp_path / "engine.log").read_text()[-3000:]
    psutil.wait_procs(marked(mark), timeout=60 * patience())
    assert not marked(mark)

    log = list(read_all(tmp_path))
    name = config.agents[0].name
    updates = [e.payload for e in log if e.kind == "agent.update" and e.payload["agent"] == name]
    assert [update["version"] for update in updates] == [1, 2, 3]
    for update in updates:
        assert update["lag"] == 0 and update["nodes"] > 0
        # Between vLLM and the learner; weights that had not been transferred would be 0.1 apart.
        assert update["mismatch"] < 1e-4
    moved = [abs(update["gradient_norm"]) for update in updates]
    assert min(moved) > 0
    results = [e.payload for e in log if e.kind == "eval.result" and e.payload["split"] == "test"]
    assert {result["step"] for result in results} == {0, 3}
