"""Which files of this machine a run may name: those that a setting opens, and registered models.

Invariant: a path from outside is resolved (links and dots followed) and found below an open
directory before anything looks whether it exists, so a refusal tells nothing about the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from engine.config import RunConfig
from engine.faults import ConfigError, printable
from webapp.datasets.references import is_reference, trainable
from webapp.projects.models import Membership, Project
from webapp.registry.models import ModelVersion
from webapp.registry.services import STARTER

GENERATED = "generated"


def refuse_paths(config: RunConfig, project: Project) -> None:
    """Raises ConfigError for each path that a run in `project` may not read, and for a stored
    dataset that it may not learn from.

    With GROVE_LOCAL_PATHS=1 a workspace of one person may name any.
    """
    if is_reference(config.problems.dataset):
        trainable(project, config.problems.dataset)
    if _may_name_any(project):
        return
    if faults := list(_faults(config, project)):
        raise ConfigError(faults)


def refuse_dataset(dataset: str, project: Project) -> None:
    """Raises ConfigError for a dataset that nobody may read in `project`, as `refuse_paths`."""
    if not _may_name_any(project) and (faults := list(_dataset_faults(dataset))):
        raise ConfigError(faults)


def _may_name_any(project: Project) -> bool:
    alone = Membership.objects.filter(workspace=project.workspace_id).count() == 1
    return settings.LOCAL_PATHS and alone


def _dataset_faults(dataset: str) -> Iterator[dict[str, str]]:
    stored = dataset == GENERATED or is_reference(dataset)
    if not stored and not _lies_in(dataset, settings.DATASETS_DIRS):
        yield _fault("problems.dataset", dataset, settings.DATASETS_DIRS, "GROVE_DATASETS")


def _faults(config: RunConfig, project: Project) -> Iterator[dict[str, str]]:
    yield from _dataset_faults(config.problems.dataset)
    models = {f"agents.{place}.model": agent.model for place, agent in enumerate(config.agents)}
    if config.inference.reward_model is not None:
        models["inference.reward_model"] = config.inference.reward_model
    for path, model in models.items():
        known = model.startswith(STARTER) or _is_registered(model, project)
        if not known and not _lies_in(model, settings.MODELS_DIRS):
            yield _fault(path, model, settings.MODELS_DIRS, "GROVE_MODELS")


def _lies_in(path: str, directories: list[Path]) -> bool:
    try:
        resolved = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, a NUL
        return False
    return any(resolved.is_relative_to(directory.resolve()) for directory in directories)


def _is_registered(model: str, project: Project) -> bool:
    is_text = printable(model) == model  # what is not, no database takes
    return is_text and ModelVersion.objects.filter(model__project=project, path=model).exists()


def _fault(path: str, value: str, directories: list[Path], setting: str) -> dict[str, str]:
    names = ", ".join(str(directory) for directory in directories)
    reason = (
        f"a run that is started here reads files below {names} only; put it there, or have whoever "
        f"runs the server name its directory in {setting} (GROVE_LOCAL_PATHS=1 opens all of the "
        "machine to a workspace of one)"
    )
    return {"path": path, "value": value, "reason": reason}
