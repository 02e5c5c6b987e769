"""References `registry:NAME@VERSION` in an agent's settings: a version by its number or alias.

Invariant: a run stores the directory of one version, never the alias, so it starts from the same
weights whenever it is run again.
"""

from __future__ import annotations

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig
from webapp.experiments.run_settings.registered_models import REGISTERED
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion


def resolved(config: RunConfig, project: Project) -> RunConfig:
    """Returns the settings with references replaced by directories.

    Raises:
        ConfigError: a reference matches no version of the project.
    """
    agents, problems = [], []
    for index, agent in enumerate(config.agents):
        if agent.model.startswith(REGISTERED):
            version = version_of(agent.model, project)
            if version is None:
                problems.append(_problem(f"agents.{index}.model", agent.model, project))
            else:
                agent = agent.model_copy(update={"model": version.path})
        agents.append(agent)
    if problems:
        raise ConfigError(problems)
    return config.model_copy(update={"agents": tuple(agents)})


def version_of(reference: str, project: Project) -> ModelVersion | None:
    """Returns the version that a reference names; None if the project has no such version."""
    name, at, which = reference.removeprefix(REGISTERED).rpartition("@")
    if not at or "\0" in reference:
        return None
    versions = ModelVersion.objects.filter(model__project=project, model__name=name)
    number = which.removeprefix("v")
    if number.isascii() and number.isdigit():
        return versions.filter(number=int(number)).first() if len(number) < 10 else None
    return versions.filter(aliases__name=which).first()


def reference_to(version: ModelVersion) -> str:
    """Returns the reference to a version, for an agent's settings."""
    return f"{REGISTERED}{version.model.name}@{version.number}"


def _problem(path: str, value: str, project: Project) -> dict[str, str]:
    reason = f"no such version in {project}; write registry:NAME@NUMBER or registry:NAME@ALIAS"
    return {"path": path, "value": value, "reason": reason}
