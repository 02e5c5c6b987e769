"""Tests that a run asks no machine for more programs or threads than it runs."""

import json
from dataclasses import replace

import pytest

from engine.__main__ import main
from engine.recipes import load_recipe, recipe_names
from engine.resources.bounds import bounds
from engine.resources.machine_memory import engine_memory, machine_memory
from engine.resources.requirements import Machine, needs_of
from engine.rollout.verification import refuse_beyond_node
from engine.run.waits import TeamError
from engine.sandbox.limits import SandboxCaps
from tests.helpers.small_recipes import CLUSTERS

HERE = Machine(cores=2, memory=24.0, gpus=(), disk=1000.0)
BEYOND_ALL = {"sandbox.workers": 256, "sandbox.memory_mb": 1 << 20}
"""Memory that no machine has."""


def unmet(overrides, machine=HERE):
    config = load_recipe("demo", overrides)
    return {need.what: need for need in needs_of(config, machine) if not need.fits}


@pytest.mark.parametrize(
    "overrides, what",
    [
        ({"sandbox.workers": 256, "sandbox.memory_mb": 2048}, "memory of 256 programs of 2048 MiB"),
        ({"sandbox.workers": 256, "sandbox.memory_mb": 32}, "programs that run at once"),
        ({"agents.0.learner_ranks": 1024}, "threads of 1026 processes with models"),
        ({"compute.threads_per_agent": 512}, "threads of 2 processes with models"),
        ({"compute.generators_per_agent": 64}, "threads of 130 processes with models"),
    ],
)
def test_what_this_machine_cannot_run_is_a_need_with_a_remedy(overrides, what):
    need = unmet(overrides)[what]
    assert "lower" in need.remedy and next(iter(overrides)).rpartition(".")[2] in need.remedy
    assert not unmet(overrides, replace(HERE, remote=True)), "a cluster's nodes count there"


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_within_the_bounds_of_the_machine_that_it_is_for(name):
    cores, size = (384, 4000 << 30) if name in CLUSTERS else (2, 8 << 30)
    assert all(one.fits for one in bounds(load_recipe(name), cores, size))


def test_the_only_node_of_a_cluster_bounds_the_programs_there():
    node = {"CPU": 2.0, "memory": 16.0 * 2**30, "object_store_memory": 8.0 * 2**30}
    refuse_beyond_node(load_recipe("demo", {"compute.threads_per_agent": 512}), node)
    for overrides in ({"sandbox.workers": 256}, {"sandbox.workers": 16, "sandbox.memory_mb": 2048}):
        with pytest.raises(TeamError, match=r"the node has at most .*; lower sandbox\.workers"):
            refuse_beyond_node(load_recipe("demo", overrides), node)


def test_the_operators_caps_and_limit_of_an_engine_count():
    config = load_recipe("demo", {"sandbox.workers": 16, "sandbox.memory_mb": 2048})
    fits = [
        [one.fits for one in bounds(caps.of_run(config), 16, size)][1]
        for size, caps in [(24 << 30, SandboxCaps()), (24 << 30, SandboxCaps(memory_mb=512)),
                           (40 << 30, SandboxCaps())]
    ]  # fmt: skip
    assert fits == [False, True, True]
    assert engine_memory({"GROVE_ENGINE_MEMORY_MIB": "7"}) == 7 << 20
    assert engine_memory({}) == engine_memory({"GROVE_ENGINE_MEMORY_MIB": "9" * 12})
    assert engine_memory({}) == machine_memory()


def test_training_a_search_and_a_measurement_refuse_it_at_their_start(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for kind in ("train", "evaluate", "search"):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "config.json").write_text(load_recipe("demo", BEYOND_ALL).model_dump_json())
        if kind == "evaluate":
            (folder / "evaluation.json").write_text(json.dumps({}))
        words = ["search", "--run-dir"] if kind == "search" else ["train"]
        assert main([*words, str(folder)]) == 2, kind
        said = capsys.readouterr().err
        assert "memory of 256 programs" in said and "lower sandbox.workers" in said, kind
