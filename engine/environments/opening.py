"""Opening of a run's environment, by its name in the table of registries.

Invariant: who opens one imports no environment; so a policy knows no problem.
"""

from __future__ import annotations

from engine.config.methods import registry
from engine.config.schema import RunConfig
from engine.environments.types import Environment


def open_environment(config: RunConfig) -> Environment:
    """Returns the environment that the settings name.

    Raises:
        PluginError: its package is broken on this machine.
    """
    return registry("environments").methods[config.environment.name](config)
