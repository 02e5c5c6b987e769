"""Environments: the prompt of a turn, what an answer is read as, and what follows.

A new environment is one module in `methods`, named as here, and one line of this registry;
`environment.name` then accepts its name (docs/extending.md).
"""

from __future__ import annotations

from engine.config.methods import Methods
from engine.environments.methods import programs
from engine.environments.types import Make, environment_of

ENVIRONMENTS: Methods[Make] = Methods(
    "environments",
    environment_of,
    programs,
)
