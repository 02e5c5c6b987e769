"""Tests that the package of docs/extending.md joins Grove by `pip install`, outside a checkout."""

from __future__ import annotations

import json
import shutil

import pytest

from engine.events.log import read_all
from tests.helpers.plugin_packages import EXAMPLE
from tests.helpers.policies import tiny_config, tiny_policy
from tests.packaging.builds import add, build_wheel, install

pytestmark = [pytest.mark.large, pytest.mark.slow, pytest.mark.service]
TRAIN_SECONDS = 300.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What somebody has who copies the page: modules and `pyproject.toml`."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copy2(EXAMPLE / "pyproject.toml", folder)
    shutil.copytree(EXAMPLE / "grove_example", folder / "grove_example",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def environment(wheel, folder, tmp_path_factory):
    """The environment of `pip install grove-rl[engine] FOLDER`."""
    environment = install(tmp_path_factory.mktemp("with-a-package"), wheel, "engine")
    add(environment, build_wheel(folder, tmp_path_factory.mktemp("example-wheel")))
    return environment


def test_the_command_lists_what_was_installed(environment):
    done = environment.run(environment.grove, "plugins")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert all("grove-example 0.1 in /" in line for line in lines) and len(lines) == 13
    assert str(environment.packages) in lines[0]


def test_a_run_trains_two_steps_by_the_package_and_reports_its_numbers(environment, tmp_path):
    model = tiny_policy(tmp_path / "model", 1)
    data = tiny_config(
        model,
        training={"steps": 2, "trees_per_step": 4, "validate_every": 9, "checkpoint_every": 9},
        problems={"seed": 3, "train": 20, "validation": 0, "test": 0},
    ).model_dump(mode="json")
    data["credit"] |= {"advantage": "smoothed", "smoothed": {"decay": 0.5}}
    data["credit"] |= {"brief": {"weight": -0.1}, "shaping_gamma": 0.0, "score": "fraction"}
    data["environment"] = {"name": "new_letters", "new_letters": {"turns": 2}}
    data["loss"] |= {"policy": "reinforce"}
    data["search"] |= {"strategy": "best_first", "allocator": "alternating"}
    data["training"] |= {"sampler": "unsolved", "compose": "again"}
    data["evaluation"] |= {"gauges": ["answer_length"]}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(json.dumps(data))
    done = environment.run(
        environment.python, "-m", "engine", "train", tmp_path / "run", seconds=TRAIN_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    log = list(read_all(tmp_path / "run"))
    updates = [event.payload for event in log if event.kind == "agent.update"]
    assert {update["step"] for update in updates} == {1, 2}
    assert all(0 <= one["figures"]["unlikely"] <= 1 for one in updates if "figures" in one)
    assert any("figures" in update for update in updates)
    played = [event.payload["verdict"] == "played" for event in log if event.kind == "node.close"]
    assert any(played) and not all(played), "episodes of the package's environment"
    parts = [event.payload["parts"] for event in log if event.kind == "node.credit"]
    assert parts and all("brief" in one for one in parts)
    logged = [event.payload for event in log if event.kind == "metric.logged"]
    for step in (1, 2):
        names = {name for one in logged if one["step"] == step for name in one["numbers"]}
        assert {name.rpartition(".")[0] for name in names} == {
            "answer_length.tokens", "smoothed.baseline",
        }  # fmt: skip
    (state,) = (tmp_path / "run" / "checkpoints").glob("step-000002/state.json")
    memory = json.loads(state.read_text())["memory"]
    assert {entry["method"] for entry in memory.values()} == {"smoothed", "unsolved", "again"}
