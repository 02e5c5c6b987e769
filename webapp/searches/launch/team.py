"""Team of a search: starters and versions of the registry, as agents.

Invariant: an agent is chosen by name or number, never by a path; a run's weights keep the role and
the sampling settings that the run gave their agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from engine.config.agents import AgentConfig
from engine.config.errors import ConfigError
from engine.recipes import load_recipe
from webapp.experiments.run_settings.hub import hub_reason
from webapp.experiments.run_settings.registered_models import PACKAGED, REGISTERED, STARTER
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion
from webapp.registry.references import absence, reference_to, version_of
from webapp.searches.launch.roles import ROLES, SMALLEST, in_role, settings_of, split

MOST_VERSIONS = 200
"""Newest versions that are offered; REST accepts any."""
_NAME_CHARS = 24
"""Characters of a model's name that are left in the name of an agent with a role."""
_STARTER_RECIPES = ("demo", "demo-mixture")
"""Recipes that train a pair of starters each; together they have all of them."""
_AGENT_SETTINGS = {"name", "role", "sampling", "template_options"}


@dataclass(frozen=True)
class Choice:
    """A possible member; `key` is `starter:NAME`, `registry:NAME@VERSION` with a number or an
    alias, or `package:NAME`; `#ROLE` after it gives a version a role of `launch.roles`."""

    key: str
    label: str
    about: str


def starters() -> dict[str, dict[str, Any]]:
    """Returns the agents of the models that ship with Grove, by key, with the settings of the
    recipe that trains them; those of the demo first."""
    return {
        agent.model: agent.model_dump(mode="json", include=_AGENT_SETTINGS | {"model"})
        for recipe in _STARTER_RECIPES
        for agent in _agents_of_starters(recipe)
    }


def demo_team() -> list[str]:
    """Returns the keys of the demo's starters."""
    return [agent.model for agent in _agents_of_starters(_STARTER_RECIPES[0])]


def _agents_of_starters(recipe: str) -> list[AgentConfig]:
    return [agent for agent in load_recipe(recipe).agents if agent.model.startswith(STARTER)]


def choices(project: Project) -> list[Choice]:
    """Returns the possible members of a team in the project: starters, then newest versions."""
    shipped = [
        Choice(key, key.removeprefix(STARTER), "starter, ships with Grove") for key in starters()
    ]
    versions = ModelVersion.objects.filter(model__project=project, metadata__starter__isnull=True)
    newest = versions.select_related("model", "run__experiment").order_by("-pk")[:MOST_VERSIONS]
    return shipped + [choice for one in newest for choice in _choices(one)]


def _choices(version: ModelVersion) -> Iterator[Choice]:
    key = reference_to(version)
    yield Choice(key, str(version), _about(version))
    if version.run is None and ("origin" in version.metadata or version.parameters >= SMALLEST):
        for role in ROLES:
            yield Choice(in_role(key, role), f"{version} as {role}", _about(version))


def _about(version: ModelVersion) -> str:
    size = f"{version.parameters / 1e6:.2f} M parameters"
    return f"{size}, from {version.run}" if version.run else size


def agents_of(project: Project, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the settings of the agents, with distinct names.

    Raises:
        ConfigError: no agent is chosen, one twice, or one that the project does not have.
    """
    if errors := list(_errors(keys)):
        raise ConfigError(errors)
    available = {**starters(), **_versions(project, keys)}
    if unknown := [key for key in keys if key not in available]:
        raise ConfigError(
            [{"path": "team", "value": key, "reason": _absence(key, project)} for key in unknown]
        )
    team: list[dict[str, Any]] = []
    for key in keys:
        agent = available[key]
        team.append({**agent, "name": _free(agent["name"], {one["name"] for one in team})})
    return team


def _absence(key: str, project: Project) -> str:
    reference, role = split(key)
    if reference.startswith(PACKAGED) and role in ("", *ROLES):
        return absence(reference, project)
    reason = "this project has no such model; choose a starter or one of its versions"
    return hub_reason("team", key) or reason


def _errors(keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    if not keys:
        yield {"path": "team", "value": "", "reason": "choose at least one model"}
    if len(set(keys)) < len(keys):
        yield {"path": "team", "value": list(keys), "reason": "choose each model once"}


def _versions(project: Project, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    known = [key for key in keys if split(key)[1] in ("", *ROLES)]
    versions = {key: version_of(split(key)[0], project) for key in known if _is_version(key)}
    return {key: _agent(version, split(key)[1]) for key, version in versions.items() if version}


def _is_version(key: str) -> bool:
    return key.startswith((REGISTERED, PACKAGED))


def _agent(version: ModelVersion, role: str = "") -> dict[str, Any]:
    agents = version.run.config["agents"] if version.run else []
    trained = next((one for one in agents if one["name"] == version.agent), {})
    inherited = {name: trained[name] for name in _AGENT_SETTINGS if name in trained}
    starter = starters().get(f"{STARTER}{version.metadata.get('starter')}", {})
    name = _slug(version.model.name)
    agent = {**starter, **inherited, "name": name, "model": version.path}
    return agent | settings_of(name[:_NAME_CHARS].rstrip("-"), role) if role else agent


def _slug(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:34]
    return slug if slug[:1].isalpha() else f"agent-{slug}".rstrip("-")


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{n}" for n in count(2) if f"{name}-{n}" not in taken)
