"""Registered models, as the settings of runs name them. The registry app provides them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.config.pretrained import PACKAGE_PREFIX
from engine.config.schema import RunConfig
from webapp.experiments.models import Run
from webapp.projects.models import Project

STARTER = "starter:"
"""Prefix of the name of a starter model, which ships with Grove."""
REGISTERED = "registry:"
"""Prefix of a reference to a registered version, `registry:NAME@VERSION`."""
PACKAGED = PACKAGE_PREFIX
"""Prefix of the name of a pretrained model, `package:NAME`: its newest version in the project."""


@dataclass(frozen=True, slots=True)
class VersionLabel:
    """A version as the page of a run shows it."""

    name: str
    parameters: int | None


class RegisteredModels(Protocol):
    """The registered models of projects."""

    def resolved(self, config: RunConfig, project: Project) -> RunConfig:
        """Returns the settings with references replaced by directories.

        Raises:
            ConfigError: a reference matches no version of the project.
        """

    def has_directory(self, path: str, project: Project) -> bool:
        """Returns whether it is the directory of a version of the project."""

    def label_of(self, model: str, project: Project) -> VersionLabel | None:
        """Returns the version that an agent's located `model` setting names; None if there is
        none."""

    def note_uses(self, run: Run) -> None:
        """Records the versions that the agents of a new run start from."""


_provided: dict[str, RegisteredModels] = {}


def provide(models: RegisteredModels) -> None:
    """Registers the provider of the registered models."""
    _provided["models"] = models


def registered_models() -> RegisteredModels:
    """Returns the provider that was registered."""
    return _provided["models"]
