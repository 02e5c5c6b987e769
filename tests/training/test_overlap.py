"""The real engine with a generator beside its learner: weights pass, and steps overlap."""

import os
import subprocess
import sys

import pytest

from engine.config import ConfigError, parse_config
from engine.events import read_all
from engine.problems.source import load_problem_set
from tests.policies import tiny_config

pytestmark = pytest.mark.slow
DEADLINE = 400


def settings(compute=None, **training):
    """A starter that learns fast enough for every update to be seen."""
    own = {
        "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32},
        "optimizer": {"learning_rate": 1e-3, "schedule": "constant", "warmup_fraction": 0.0},
    }
    return tiny_config(
        agents=[{"name": "oak", "model": "starter:oak", **own}],
        problems={"seed": 3, "train": 60, "validation": 3, "test": 0},
        training={"steps": 5, "trees_per_step": 8, "validate_every": 3, "checkpoint_every": 9}
        | training,
        compute=compute or {},
    )


def train(folder, config, address):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(config.model_dump_json())
    with (folder / "engine.log").open("ab") as log:
        command = [sys.executable, "-m", "engine", "train", str(folder)]
        environment = os.environ | {"RAY_ADDRESS": address}
        code = subprocess.run(command, stdout=log, stderr=log, timeout=DEADLINE, env=environment)
    errors = [e.payload["message"] for e in read_all(folder) if e.kind == "error"]
    assert code.returncode == 0, errors or (folder / "engine.log").read_text()[-3000:]
    return list(read_all(folder))


def payloads(events, kind):
    return [event.payload for event in events if event.kind == kind]


def test_a_step_is_learned_from_while_the_next_is_written(ray_address, tmp_path):
    compute = {"generators_per_agent": 1}
    events = train(tmp_path / "run", settings(compute, overlap=True), ray_address)
    updates = payloads(events, "agent.update")
    assert [u["step"] for u in updates] == [1, 2, 3, 4, 5]
    by_step = {u["step"]: u for u in updates}
    # Validation of step 3 waits for what is under way: step 4 is written by the newest weights.
    assert {step: u["lag"] for step, u in by_step.items()} == {1: 0, 2: 1, 3: 1, 4: 0, 5: 1}
    # The generator's log-probabilities are those of the weights that it was given ...
    assert by_step[1]["version"] == 1 and by_step[4]["version"] == 4
    assert by_step[1]["mismatch"] < 1e-4 and by_step[4]["mismatch"] < 1e-4
    # ... and of no others: what is one update old is told apart, and corrected for.
    assert all(by_step[step]["mismatch"] > 1e-3 for step in (2, 3, 5))
    # Every node of a step was written by one version, and nothing is counted twice or lost.
    nodes = payloads(events, "node.close")
    assert sum(u["nodes"] for u in updates) == len(nodes) == 5 * 8 * 4
    assert {node["policy_version"] for node in nodes} == {0, 1, 3}
    order = [
        (event.kind, event.payload["step"])
        for event in events
        if event.kind in ("step.start", "agent.update")
    ]
    assert order.index(("step.start", 2)) < order.index(("agent.update", 1))
    # Each problem has its turn once, although a step's first nodes are asked for before it begins.
    problems = load_problem_set(settings().problems).training_batch(0, 5 * 8)
    assert [tree["problem"] for tree in payloads(events, "tree.open")] == [p.id for p in problems]
    opened = [(event.tree, event.node) for event in events if event.kind == "node.open"]
    assert len(set(opened)) == len(opened) == 5 * 8 * 4
    phases = payloads(events, "step.end")[1]["phases"]
    assert {"generate", "verify", "credit", "learn", "sync"} <= phases.keys()


@pytest.mark.parametrize(
    ("compute", "training", "told"),
    [
        ({}, {"overlap": True}, "compute.generators_per_agent to 1"),
        ({"generators_per_agent": 1}, {"overlap": True, "max_staleness": 0}, "to 1 or more"),
        (
            {"generators_per_agent": 1, "deterministic": True},
            {"overlap": True},
            "training.overlap = True with compute.deterministic",
        ),
        ({"deterministic": True}, {"extra_trees": 2}, "training.extra_trees = 2"),
    ],
)
def test_what_cannot_overlap_is_refused(compute, training, told):
    agents = [{"name": "oak", "model": "starter:oak"}]
    with pytest.raises(ConfigError, match=told):
        parse_config({"agents": agents, "compute": compute, "training": training})
