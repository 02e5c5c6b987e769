"""Putting weights into the registry, each with its lineage and each only once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction

from webapp.experiments.models import Run
from webapp.projects.models import Project
from webapp.registry.models import Model, ModelVersion
from webapp.registry.weights import inspect

STARTER = "starter:"


@transaction.atomic
def register_starters(
    project: Project, starters: Mapping[str, Path], metadata: Mapping[str, Any]
) -> list[ModelVersion]:
    """Starter models as versions without a parent; one that is known already is found again.

    `starters`: directory by name; `metadata`: how they were made (seed, generator version, ...).
    Raises `WeightsError` if a directory holds no readable weights.
    """
    _lock(project)
    return [
        _register_starter(project, name, path.resolve(), dict(metadata))
        for name, path in starters.items()
    ]


def _register_starter(
    project: Project, name: str, path: Path, metadata: dict[str, Any]
) -> ModelVersion:
    weights = inspect(path)
    model, _ = Model.objects.get_or_create(project=project, name=name)
    if known := model.versions.filter(sha256=weights.sha256, run=None).first():
        return known
    return _add_version(
        model,
        path,
        metadata={**metadata, "starter": name},
        sha256=weights.sha256,
        parameters=weights.parameters,
    )


@transaction.atomic
def register_final_weights(run: Run, step: int, weights: Mapping[str, Path]) -> list[ModelVersion]:
    """The weights that a run ended with, as new versions of the models its agents started from.

    `weights`: directory by agent. Doing it again for the same run and agent changes nothing.
    Raises `WeightsError` if a directory holds no readable weights.
    """
    _lock(run.project)
    return [
        run.versions.filter(agent=agent).first()
        or _register_final(run, step, agent, path.resolve())
        for agent, path in weights.items()
    ]


def _register_final(run: Run, step: int, agent: str, path: Path) -> ModelVersion:
    started_from = next(a["model"] for a in run.config["agents"] if a["name"] == agent)
    parent = version_behind(run.project, started_from)
    model = (
        parent.model if parent else Model.objects.get_or_create(project=run.project, name=agent)[0]
    )
    found = inspect(path)
    return _add_version(
        model,
        path,
        sha256=found.sha256,
        parameters=found.parameters,
        run=run,
        agent=agent,
        step=step,
        parent=parent,
        dataset_version=run.dataset_version,
        metadata={"seed": run.seed, "started_from": started_from},
    )


def version_behind(project: Project, model: str) -> ModelVersion | None:
    """The version that an agent's `model` setting means: a starter's name, or a directory."""
    versions = ModelVersion.objects.filter(model__project=project).order_by("-pk")
    if model.startswith(STARTER):
        return versions.filter(metadata__starter=model.removeprefix(STARTER)).first()
    return versions.filter(path=str(Path(model).resolve())).first()


def _add_version(model: Model, path: Path, **fields: Any) -> ModelVersion:
    number = model.versions.count() + 1
    return ModelVersion.objects.create(model=model, number=number, path=str(path), **fields)


def _lock(project: Project) -> None:
    # Version numbers are counted: one registration per project at a time.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
