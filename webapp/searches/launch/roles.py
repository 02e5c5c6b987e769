"""Roles in which one model can be a member of a team more than once: `KEY#ROLE`."""

from __future__ import annotations

from typing import Any

SMALLEST = 50_000_000
"""Parameters of the smallest model that is taken for a pretrained one without a known origin."""

ROLES = {
    "writer": (
        "You write short and correct Python 3. Answer with one code block that holds the whole "
        "function, and nothing else."
    ),
    "checker": (
        "You are a careful Python 3 programmer. Before you write, think of the empty input, of one "
        "item and of repeated items. Answer with one code block that holds the whole function, and "
        "nothing else."
    ),
}
"""System message of each role."""

SAMPLING = {
    "temperature": 0.8,
    "top_p": 0.95,
    "max_prompt_tokens": 1024,
    "max_new_tokens": 256,
}
"""Limits that let a model of some hundred million parameters answer on two cores."""


def in_role(key: str, role: str) -> str:
    return f"{key}#{role}"


def split(key: str) -> tuple[str, str]:
    """Returns key and role, which is empty if none is named."""
    reference, _, role = key.partition("#")
    return reference, role


def settings_of(name: str, role: str) -> dict[str, Any]:
    """Returns the settings of an agent in a role."""
    return {"name": f"{name}-{role}", "role": ROLES[role], "sampling": dict(SAMPLING)}
