"""A fork begins with the weights and the optimizer of another run's checkpoint, and changes."""

import hashlib
import json
import shutil

import pytest
import torch

from engine.__main__ import main
from engine.config import parse_config
from engine.events import read_all
from engine.forking import FORK_FILE, ORIGIN, fork_faults
from engine.policy.agent import STATE_FILE
from engine.training.endings import ExitCode
from tests.training.test_engine import DEADLINE, prepare, start
from tests.training.test_resume import settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parent(tmp_path_factory, ray_address):
    """A run that has ended, with its checkpoint of the last step."""
    folder = tmp_path_factory.mktemp("parent")
    plan = {"steps": 1, "batch_nodes": 1, "minibatches": 1, "validate_every": 9}
    run_dir = prepare(folder / "run", settings(**plan))
    assert start(run_dir, ray_address).wait(DEADLINE) == 0, (run_dir / "engine.log").read_text()[
        -3000:
    ]
    return run_dir


def newest(run_dir):
    return sorted((run_dir / "checkpoints").glob("step-*"))[-1]


def weights(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_a_fork_goes_on_from_anothers_weights_with_other_settings(parent, tmp_path, ray_address):
    before = {p: p.read_bytes() for p in parent.rglob("*.json")}
    other = tmp_path / parent.name
    shutil.copytree(parent, other)
    checkpoint = newest(other)
    step = int(checkpoint.name.removeprefix("step-"))
    run_dir = tmp_path / "fork"
    wanted = (
        f"training.steps={step + 1}",
        "seed=9",
        "agents.0.optimizer.beta1=0.5",
        "problems.test=0",
    )
    assert main(["fork", str(checkpoint), str(run_dir), *wanted]) == 0
    shutil.rmtree(checkpoint)  # its parent goes on, and keeps newer ones
    assert start(run_dir, ray_address).wait(DEADLINE) == 0, (run_dir / "engine.log").read_text()[
        -3000:
    ]
    told = list(read_all(run_dir))
    assert [e.payload["step"] for e in told if e.kind == "step.end"] == [step + 1]
    lines = [e.payload["message"] for e in told if e.kind == "log.line"]
    assert f"forked from step {step} of run run: weights and optimizer" in lines
    owner = parse_config(json.loads((run_dir / "config.json").read_text())).agents[0].name
    checkpoint = newest(parent)
    origin = run_dir / ORIGIN / "checkpoints" / checkpoint.name / owner
    assert weights(origin) == weights(checkpoint / owner) != weights(newest(run_dir) / owner)
    # Adam's moments went on: its count of steps is more than the fork made alone.
    of_parent, of_fork = (
        torch.load(folder / owner / STATE_FILE, weights_only=True)["learner"]
        for folder in (checkpoint, newest(run_dir))
    )
    assert of_fork["version"] == of_parent["version"] + 1
    assert of_fork["optimizer"]["state"][0]["step"] > of_parent["optimizer"]["state"][0]["step"]
    assert of_fork["optimizer"]["param_groups"][0]["betas"][0] == 0.5
    assert {p: p.read_bytes() for p in parent.rglob("*.json")} == before


def test_a_checkpoint_that_is_gone_is_told_with_those_that_are_there(parent, tmp_path, ray_address):
    run_dir = tmp_path / "late"
    assert main(["fork", str(newest(parent)), str(run_dir)]) == 0
    (run_dir / FORK_FILE).write_text(
        json.dumps({"checkpoint": str(parent / "checkpoints" / "step-000099")})
    )
    assert start(run_dir, ray_address).wait(DEADLINE) == ExitCode.REFUSED
    said = (run_dir / "engine.log").read_text()
    assert "step-000099 is gone" in said and newest(parent).name in said


def test_a_fork_is_refused_before_anything_is_written(parent, tmp_path, capsys):
    there, gone = newest(parent), parent / "checkpoints" / "step-000099"
    assert main(["fork", str(gone), str(tmp_path / "late")]) == 2
    said = capsys.readouterr().err
    assert f"{gone} is gone" in said and there.name in said
    assert main(["fork", str(there), str(tmp_path / "late"), "compute.dtype=bfloat16"]) == 2
    assert "compute.dtype" in capsys.readouterr().err
    assert not (tmp_path / "late").exists()
    settings_of_parent = (parent / "config.json").read_bytes()
    assert main(["fork", str(there), str(parent)]) == 2
    assert "name another directory" in capsys.readouterr().err
    assert (parent / "config.json").read_bytes() == settings_of_parent


@pytest.mark.parametrize(
    "change, path",
    [
        ({"agents": [{"name": "oak", "model": "starter:fern"}]}, "agents.0.model"),
        ({"agents": [{"name": "elm", "model": "starter:oak"}]}, "agents.0.name"),
        ({"agents": [{"name": "oak", "model": "starter:oak", "lora": {}}]}, "agents.0.lora"),
        ({"compute": {"dtype": "bfloat16"}}, "compute.dtype"),
        ({"agents": [{"name": n, "model": "starter:oak"} for n in ("oak", "elm")]}, "agents"),
    ],
)
def test_what_a_checkpoint_hangs_on_is_refused_by_its_path(change, path):
    before = {"agents": [{"name": "oak", "model": "starter:oak"}]}
    old, new = (parse_config(one).model_dump(mode="json") for one in (before, before | change))
    faults = fork_faults(old, new)
    assert [fault["path"] for fault in faults] == [path]
    assert "start a new run" in faults[0]["reason"]


def test_everything_else_may_change():
    before = {"agents": [{"name": "oak", "model": "starter:oak"}]}
    other = {
        "agents": [{"name": "oak", "model": "starter:oak", "role": "Be brief.",
                    "optimizer": {"learning_rate": 0.1}, "sampling": {"temperature": 0.5}}],
        "seed": 3, "problems": {"seed": 9}, "search": {"nodes_per_tree": 2},
        "loss": {"policy": "ppo"}, "credit": {"advantage": "grpo"}, "training": {"steps": 3},
    }  # fmt: skip
    old, new = (parse_config(one).model_dump(mode="json") for one in (before, other))
    assert fork_faults(old, new) == []
