"""Overrides that make a recipe train in seconds on two cores, with its own structure."""

from __future__ import annotations

from typing import Any

from engine.recipes import load_recipe, recipe_names

TREES, NODES = 6, 8
BATCH = 12
"""Nodes of an agent's own in a batch, for a recipe that asks for more than one."""
REFILLED = "tree-single"
"""Recipe whose run replaces filtered trees; its trees are small, so that some are filtered."""
RANKED = "dr-grpo"
"""Recipe whose policy learns in two ranks."""
CLUSTERS = tuple(name for name in recipe_names() if load_recipe(name).compute.device == "cuda")
"""Recipes of models that need a cluster."""


def small_overrides(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns overrides, by dotted path, for a recipe with these resolved settings."""
    search, credit = settings["search"], settings["credit"]
    nodes = min(search["nodes_per_tree"], NODES)
    overrides = {
        "problems.validation": 0,
        "problems.test": 0,
        "search.nodes_per_tree": nodes,
        "search.nodes_in_flight": min(search["nodes_in_flight"], nodes),
        "credit.overlong_buffer_tokens": min(credit["overlong_buffer_tokens"], 8),
        "training.steps": 2,
        "training.minutes": None,
        "training.trees_per_step": TREES * NODES // nodes,
        "training.batch_nodes": min(settings["training"]["batch_nodes"], BATCH),
        "training.checkpoint_every": 9,
        "sandbox.workers": 1,
        "compute.device": "cpu",
        "compute.dtype": "float32",
        "compute.lanes": 1,
        "compute.threads_per_agent": 1,
    }
    for number, agent in enumerate(settings["agents"]):
        overrides[f"agents.{number}.role"] = ""  # the starters were not trained with roles
        if agent["model"].startswith("package:"):  # would have to be downloaded
            overrides[f"agents.{number}.model"] = "starter:oak"
        overrides[f"agents.{number}.sampling.max_prompt_tokens"] = 192
        overrides[f"agents.{number}.sampling.max_new_tokens"] = 32
    if settings["recipe"] == REFILLED:
        overrides |= {"credit.refill_rounds": 2, "search.nodes_per_tree": 3}
    if settings["recipe"] == RANKED:
        overrides |= {"agents.0.learner_ranks": 2, "agents.0.optimizer.learning_rate": 1e-3}
    return overrides
