"""References in an agent's settings: `registry:NAME@VERSION`, a version by its number or alias, and
`package:NAME`, the project's newest version of a pretrained model.

Invariant: a run stores the directory of one version, never the reference, so it starts from the
same weights whenever it is run again.
"""

from __future__ import annotations

from django.db.models import Q

from engine.config.errors import ConfigError
from engine.config.pretrained import CatalogueError, pretrained_model
from engine.config.schema import RunConfig
from webapp.experiments.run_settings.registered_models import PACKAGED, REGISTERED
from webapp.projects.models import Project
from webapp.queued_imports import ImportState
from webapp.registry.model_imports.catalogue import CatalogueUnusable
from webapp.registry.models import ModelVersion


def resolved(config: RunConfig, project: Project) -> RunConfig:
    """Returns the settings with references replaced by directories.

    Raises:
        ConfigError: a reference matches no version of the project.
    """
    agents, problems = [], []
    for index, agent in enumerate(config.agents):
        if agent.model.startswith((REGISTERED, PACKAGED)):
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
    if reference.startswith(PACKAGED):
        return _version_of_package(reference.removeprefix(PACKAGED), project)
    name, at, which = reference.removeprefix(REGISTERED).rpartition("@")
    if not at or "\0" in reference:
        return None
    versions = ModelVersion.objects.filter(model__project=project, model__name=name)
    number = which.removeprefix("v")
    if number.isascii() and number.isdigit():
        return versions.filter(number=int(number)).first() if len(number) < 10 else None
    return versions.filter(aliases__name=which).first()


def _version_of_package(name: str, project: Project) -> ModelVersion | None:
    """Returns the newest version of a pretrained model, by its short name or its package."""
    try:
        entry = pretrained_model(name)
    except ValueError:
        return None
    # The files of a package may have been a version before, of the same GGUF file for example.
    imported = Q(imports__package=entry.name, imports__state=ImportState.DONE)
    versions = ModelVersion.objects.filter(
        Q(metadata__origin__package=entry.package) | imported, model__project=project
    )
    return versions.order_by("-pk").first()


def reference_to(version: ModelVersion) -> str:
    """Returns the reference to a version, for an agent's settings."""
    return f"{REGISTERED}{version.model.name}@{version.number}"


def absence(reference: str, project: Project) -> str:
    """Returns why a reference matches no version of the project, with the remedy."""
    if not reference.startswith(PACKAGED):
        return f"no such version in {project}; write registry:NAME@NUMBER or registry:NAME@ALIAS"
    try:
        entry = pretrained_model(reference.removeprefix(PACKAGED))
    except CatalogueError:
        return str(CatalogueUnusable())  # the operator's fault, without the server's path
    except ValueError as error:
        return str(error)
    return (
        f"{project} has no version of it; add {entry.title} under Models → Add a pretrained model"
    )


def _problem(path: str, value: str, project: Project) -> dict[str, str]:
    return {"path": path, "value": value, "reason": absence(value, project)}
