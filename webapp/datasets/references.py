"""References of runs to stored versions: `dataset:NAME/NUMBER`, of the run's own project.

Invariants: a reference is looked up among the versions of the project and is never a path; a run
trains only on a checked version without faulty problems.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.config.errors import ConfigError
from engine.problems.formats import OWN
from webapp.artifacts.store import local_path
from webapp.datasets.models import DatasetVersion
from webapp.projects.models import Project

BEGINNING = "dataset:"
PATH = "problems.dataset"


def is_reference(dataset: str) -> bool:
    """Returns whether the setting names a stored version."""
    return dataset.startswith(BEGINNING)


def stored_versions(project: Project) -> list[DatasetVersion]:
    """Returns the versions of a project whose problems are stored, by name, newest first."""
    versions = DatasetVersion.objects.filter(dataset__project=project, artifact__isnull=False)
    return list(versions.select_related("dataset").order_by("dataset__name", "-number"))


def trainable(project: Project, dataset: str) -> DatasetVersion:
    """Returns the named version.

    Raises:
        ConfigError: it does not exist, or may not be trained on; gives the reason and remedy.
    """
    name, _, number = dataset.removeprefix(BEGINNING).rpartition("/")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    versions = DatasetVersion.objects.filter(dataset__project=project, artifact__isnull=False)
    versions = versions.select_related("dataset")
    version = (
        versions.filter(dataset__name=name, number=int(number)).first()
        if is_number and "\0" not in name
        else None
    )
    if version is None:
        raise _refused(dataset, _available_versions(project))
    if reason := untrainable_reason(version):
        raise _refused(dataset, reason)
    return version


def untrainable_reason(version: DatasetVersion) -> str:
    """Returns why no run may train on this version, with the remedy; empty if runs may."""
    if version.faulty is None:
        return (
            f"{version} is not checked yet: wait until the check on its page is done, or start it"
        )
    if version.faulty:
        one = version.faulty == 1
        subject = "1 problem fails its" if one else f"{version.faulty} problems fail their"
        return (
            f"in {version} {subject} own tests: on its page keep those that pass as a new version, "
            "and use it, or upload a corrected dataset"
        )
    return ""


def for_engine(config: dict[str, Any], version: DatasetVersion | None) -> dict[str, Any]:
    """Returns a run's settings for its engine: a stored version by the path of its content on this
    machine. Raises `OSError` if the content is unavailable."""
    if version is None or version.artifact_id is None:
        return config
    path: Path = local_path(version.artifact_id)
    return {**config, "problems": {**config["problems"], "dataset": str(path), "format": OWN}}


def _available_versions(project: Project) -> str:
    names = ", ".join(version.reference for version in stored_versions(project)[:20])
    available = f"there are {names}" if names else "it has none yet"
    return f"is no version of a dataset in {project}; {available}"


def _refused(dataset: str, reason: str) -> ConfigError:
    return ConfigError([{"path": PATH, "value": dataset, "reason": reason}])
