"""Teams of the claims, all with the settings of the recipe `demo`, so that nothing else differs."""

from __future__ import annotations

from typing import Any

from engine.recipes import recipe_data

ROLES = {"writer": "You write programs.", "debugger": "You repair programs."}
"""Short, since a prompt of the starters has 192 tokens."""
DEEPER = "deeper:"
"""`deeper:STARTER:LAYERS`: that starter with more layers, initialised as the identity."""

SHARED: dict[str, Any] = {
    "search.nodes_per_tree": 8,
    "search.nodes_in_flight": 2,
    "credit.overlong_buffer_tokens": 0,
    "compute.dtype": "float32",
    "compute.lanes": 1,
    "training.micro_batch_tokens": 4096,
    "problems.train": 100000,
    "sandbox.workers": 2,
}
"""Settings in which `demo` differs from the recipes of other teams."""


def agent(name: str, model: str, **more: Any) -> dict[str, Any]:
    """Returns an agent as the recipe `demo` has them, with another model."""
    first = recipe_data("demo")["agents"][0]
    return {**first, "name": name, "model": model, **more}


def single(model: str) -> dict[str, Any]:
    """Returns the overrides of `tree-single`: one agent."""
    return {**SHARED, "agents": [agent("solo", model)]}


def in_roles(model: str) -> dict[str, Any]:
    """Returns the overrides of `mars2-homogeneous`: one model in two roles."""
    writer, debugger = ROLES
    return {
        **SHARED,
        "agents": [
            agent(writer, model, role=ROLES[writer]),
            {"name": debugger, "shares_weights_with": writer, "role": ROLES[debugger]},
        ],
    }
