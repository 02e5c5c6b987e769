"""`registry:NAME@VERSION` in an agent's settings: a version by its number or by an alias.

Invariant: what a run keeps is the directory of one version, never the alias: it begins with the
same weights whenever it is run again.
"""

from __future__ import annotations

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion

PREFIX = "registry:"


def resolved(config: RunConfig, project: Project) -> RunConfig:
    """The settings with directories in place of references.

    Raises:
        ConfigError: a reference means no version of the project.
    """
    agents, faults = [], []
    for place, agent in enumerate(config.agents):
        if agent.model.startswith(PREFIX):
            version = version_of(agent.model, project)
            if version is None:
                faults.append(_fault(f"agents.{place}.model", agent.model, project))
            else:
                agent = agent.model_copy(update={"model": version.path})
        agents.append(agent)
    if faults:
        raise ConfigError(faults)
    return config.model_copy(update={"agents": tuple(agents)})


def version_of(reference: str, project: Project) -> ModelVersion | None:
    """The version that a reference means; None if there is none in the project."""
    name, at, which = reference.removeprefix(PREFIX).rpartition("@")
    if not at or "\0" in reference:
        return None
    versions = ModelVersion.objects.filter(model__project=project, model__name=name)
    number = which.removeprefix("v")
    if number.isascii() and number.isdigit():
        return versions.filter(number=int(number)).first() if len(number) < 10 else None
    return versions.filter(aliases__name=which).first()


def reference_to(version: ModelVersion) -> str:
    """What to write in an agent's settings."""
    return f"{PREFIX}{version.model.name}@{version.number}"


def _fault(path: str, value: str, project: Project) -> dict[str, str]:
    reason = f"no such version in {project}; write registry:NAME@NUMBER or registry:NAME@ALIAS"
    return {"path": path, "value": value, "reason": reason}
