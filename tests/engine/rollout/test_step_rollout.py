"""Tests of which runs grow their trees in waves, by the recipes and settings of a new run."""

import pytest

from engine.recipes import load_recipe
from engine.rollout.step_rollout import is_continuous

VLLM = {f"agents.{number}.generator.name": "vllm" for number in (0, 1)}


@pytest.mark.parametrize(
    ("recipe", "overrides", "expected"),
    [
        ("demo", {}, False),
        ("mars2", {}, False),
        ("grpo", {}, True),
        ("grpo", {"compute.deterministic": True}, False),
        ("grpo", {"search.nodes_in_flight": 32}, False),
        ("demo", {"training.overlap": True, "compute.generators_per_agent": 1}, True),
        ("demo", {"training.extra_trees": 4}, True),
        ("mars2", VLLM, True),
    ],
)
def test_trees_grow_without_waves_where_an_open_batch_costs_nothing(recipe, overrides, expected):
    assert is_continuous(load_recipe(recipe, overrides)) is expected
