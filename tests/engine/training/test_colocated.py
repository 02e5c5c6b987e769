"""Tests of `placement = colocated` without a GPU: learner and generator share one bundle.

The result has the same bits as with a learner that generates itself.
"""

from __future__ import annotations

import pytest
import ray
from ray.util.placement_group import placement_group_table
from safetensors.numpy import load_file

from engine.events.log import read_all
from tests.engine.training.in_process import a_trainer
from tests.helpers.policies import tiny_config
from tests.helpers.waiting import patience

pytestmark = [pytest.mark.large, pytest.mark.slow]
STEPS = 3


def settings(**compute):
    own = {
        "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32},
        "optimizer": {"learning_rate": 1e-3, "schedule": "constant", "warmup_fraction": 0.0},
    }
    return tiny_config(
        agents=[{"name": "oak", "model": "starter:oak", **own}],
        problems={"seed": 3, "train": 60, "validation": 0, "test": 0},
        training={"steps": STEPS, "trees_per_step": 8},
        compute={"deterministic": True, **compute},
    )


def process_of(actor):
    """Node and process of an actor."""
    return ray.get(
        actor.__ray_call__.remote(
            lambda self: (ray.get_runtime_context().get_node_id(), __import__("os").getpid())
        ),
        timeout=60 * patience(),
    )


def logged_data(folder):
    """The logged data of every node and update, except times."""
    nodes, updates = [], []
    for event in read_all(folder):
        if event.kind == "node.close":
            nodes.append((event.tree, event.node, event.payload["program"], event.payload["score"]))
        elif event.kind == "agent.update":
            updates.append(event.payload["loss"])
    return nodes, updates


def test_a_learner_and_its_generator_in_one_bundle_learn_the_same_bits(ray_address, tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    with a_trainer(alone, settings(), ray_address) as trainer:
        trainer.run()
    config = settings(placement="colocated", generators_per_agent=1)
    with a_trainer(together, config, ray_address) as trainer:
        team = trainer.team
        (bundle,) = placement_group_table(team._placed)["bundles"].values()
        assert bundle == {"CPU": 2.0}
        (learner,), (generator,) = [team.agents["oak"]], team.generators["oak"]
        here, there = process_of(learner), process_of(generator)
        assert here[0] == there[0] and here[1] != there[1]
        trainer.run()
    nodes, updates = logged_data(together)
    assert (nodes, updates) == logged_data(alone)
    assert len(nodes) == STEPS * 8 * 4 and len(updates) == STEPS
    assert len({program for _, _, program, _ in nodes}) > STEPS
    first, second = (
        load_file(f / "models" / "oak" / "model.safetensors") for f in (alone, together)
    )
    assert all((first[name] == second[name]).all() for name in first)
