"""Registration of weights, each with its lineage and only once.

Imported files are stored as artifacts immediately; a run's files stay where the run wrote them
until a worker stores them (`store_next`), so that no run's end waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max

from webapp.artifacts import store
from webapp.experiments.models import Run
from webapp.experiments.run_settings.registered_models import STARTER
from webapp.projects.models import Project
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.layout import Folder, inspect
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.models import Model, ModelUse, ModelVersion, VersionFile


@transaction.atomic
def register_starters(
    project: Project, starters: Mapping[str, Path], metadata: Mapping[str, Any]
) -> list[ModelVersion]:
    """Registers starter models as versions without a parent; returns the existing version of one
    that is registered already.

    `starters`: directory by name; `metadata`: how they were made (seed, generator version, ...).
    Raises `WeightsError` if a directory holds no readable weights.
    """
    lock(project)
    return [
        _register_starter(project, name, path.resolve(), dict(metadata))
        for name, path in starters.items()
    ]


def _register_starter(
    project: Project, name: str, path: Path, metadata: dict[str, Any]
) -> ModelVersion:
    weights = inspect(path)
    model, _ = Model.objects.get_or_create(project=project, name=name)
    if existing := model.versions.filter(sha256=weights.sha256, run=None).first():
        return existing
    return add_folder(model, path, weights, metadata={**metadata, "starter": name})


@transaction.atomic
def register_final_weights(run: Run, step: int, weights: Mapping[str, Path]) -> list[ModelVersion]:
    """Registers a run's final weights as new versions of the models its agents started from.

    `weights`: directory by agent. Repeating it for the same run and agent changes nothing.
    Raises `WeightsError` if a directory holds no readable weights.
    """
    lock(run.project)
    return [
        run.versions.filter(agent=agent, step=step).first()
        or _register_final(run, step, agent, path.resolve())
        for agent, path in weights.items()
    ]


def _register_final(run: Run, step: int, agent: str, path: Path) -> ModelVersion:
    model, lineage = origin_of(run, agent)
    return add_folder(model, path, inspect(path), step=step, **lineage)


def origin_of(run: Run, agent: str) -> tuple[Model, dict[str, Any]]:
    """Returns the model of which the agent's weights become a version, and that version's lineage.
    Creates a missing model; the caller holds the lock of the project."""
    started_from = next(a["model"] for a in run.config["agents"] if a["name"] == agent)
    parent = version_behind(run.project, started_from)
    model = (
        parent.model if parent else Model.objects.get_or_create(project=run.project, name=agent)[0]
    )
    return model, {
        "run": run,
        "agent": agent,
        "parent": parent,
        "dataset_version": run.dataset_version,
        "metadata": {"seed": run.seed, "started_from": started_from},
    }


def version_behind(project: Project, model: str) -> ModelVersion | None:
    """Returns the version that an agent's `model` setting names: a starter, or a directory."""
    versions = ModelVersion.objects.filter(model__project=project).order_by("-pk")
    if model.startswith(STARTER):
        return versions.filter(metadata__starter=model.removeprefix(STARTER)).first()
    return versions.filter(path=str(Path(model).resolve())).first()


def note_uses(run: Run) -> None:
    """Records the versions that the agents of a new run start from; they are kept as long as the
    run."""
    agents = run.config.get("agents", ())
    by_agent = {one["name"]: version_behind(run.project, one["model"]) for one in agents}
    ModelUse.objects.bulk_create(
        ModelUse(run=run, agent=agent, version=version)
        for agent, version in by_agent.items()
        if version is not None
    )


def write_notes(version: ModelVersion, notes: str) -> None:
    """Stores people's notes on a version; the rest of its card is generated."""
    version.notes = notes
    version.save(update_fields=["notes"])


def add_folder(model: Model, path: Path, contents: Folder, **fields: Any) -> ModelVersion:
    """Creates a version of a folder's contents; the caller holds the lock of its project."""
    version = add_version(
        model, path=str(path), sha256=contents.sha256, parameters=contents.parameters, **fields
    )
    _note_files(version, contents)
    return version


def _note_files(version: ModelVersion, contents: Folder) -> None:
    VersionFile.objects.bulk_create(
        VersionFile(version=version, name=one.name, size=one.size, sha256=one.sha256)
        for one in contents.files
    )


@transaction.atomic
def list_files(version: ModelVersion) -> int:
    """Records the files of a version registered before lists existed, and returns their number.

    Raises:
        RegistryRefused: its directory is missing, or holds other weights by now.
    """
    lock(version.model.project)
    if version.files.exists():
        return version.files.count()
    try:
        contents = inspect(Path(version.path))
    except (WeightsError, OSError) as error:
        raise RegistryRefused(f"The files of {version} cannot be listed: {error}.") from None
    if contents.sha256 != version.sha256:
        raise RegistryRefused(
            f"The weights in {version.path} are not those of {version}: {contents.sha256}."
        )
    _note_files(version, contents)
    return len(contents.files)


class NotStored(Exception):
    """Raised when a version's file, `file`, cannot be stored as an artifact for now."""

    def __init__(self, file: VersionFile, cause: Exception):
        self.file = file
        super().__init__(f"{file.name} of {file.version} cannot be stored: {cause}")


def store_next(excluded: Collection[int] = ()) -> VersionFile | None:
    """Stores the file that has waited longest, except the ids in `excluded`, as an artifact and
    returns it; None if none waits. Two callers that take the same file store it once: the store
    identifies it by its content.

    Raises:
        NotStored: it is missing, differs from what was registered, or the store refuses it.
    """
    waiting = VersionFile.objects.filter(artifact=None).exclude(pk__in=excluded)
    file = waiting.select_related("version__model").order_by("pk").first()
    if file is None:
        return None
    try:
        file.artifact = store.put_linked(Path(file.version.path) / file.name, file.sha256)
    except (OSError, store.WrongDigest) as error:
        raise NotStored(file, error) from error
    VersionFile.objects.filter(pk=file.pk).update(artifact=file.artifact)
    return file


def add_version(model: Model, **fields: Any) -> ModelVersion:
    """Creates the next version of a model; the caller holds the lock of its project."""
    # Numbers are never reused, not even that of a deleted version.
    last = max(
        model.versions.aggregate(last=Max("number"))["last"] or 0,
        model.promotions.aggregate(last=Max("number"))["last"] or 0,
    )
    return ModelVersion.objects.create(model=model, number=last + 1, **fields)


def lock(project: Project) -> None:
    """Locks the project: one registration at a time, because version numbers are counted."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
