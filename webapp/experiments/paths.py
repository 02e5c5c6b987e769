"""What a run may read that its settings name: what ships with Grove, what its project holds, and
what whoever runs the server has listed.

Invariant: no path and no address is taken from a user, only names. A model is `starter:NAME`,
`registry:NAME@VERSION` or `local:NAME`, a dataset `generated`, `dataset:NAME/NUMBER` or
`local:NAME`; a local name is looked for among those that the directories of GROVE_MODELS and
GROVE_DATASETS hold, and nothing is ever made of it. The paths that stand for names are kept with
the run: its clones and forks have them from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.config import RunConfig
from engine.faults import ConfigError, printable
from webapp.datasets.references import BEGINNING, PATH, is_reference, trainable
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion
from webapp.registry.references import PREFIX, resolved
from webapp.registry.services import STARTER

GENERATED = "generated"
LOCAL = "local:"
_SHOWN = 20
_RAY = "compute.ray_address"
_REWARD = "inference.reward_model"


def located(
    config: RunConfig, project: Project, base: Mapping[str, Any] | None = None
) -> RunConfig:
    """The settings with the paths of this machine that their names stand for.

    `base` are settings that were located before and that these were made from: what they name is
    no word of a user.

    Raises:
        ConfigError: a path or an address in a name's place, a name that stands for nothing, or a
            stored dataset that may not be learned from.
    """
    had = set(_named(base).values()) if base else set()
    if faults := [fault for path, value in _named(config.model_dump()).items()
                  if value not in had and (fault := _fault(path, value))]:  # fmt: skip
        raise ConfigError(faults)
    found = _with_local(resolved(config, project))
    if is_reference(found.problems.dataset):
        trainable(project, found.problems.dataset)
    refuse_paths(found, project)
    return found


def refuse_paths(config: RunConfig, project: Project) -> None:
    """Raises ConfigError for each path in located settings that a run in `project` may not read."""
    faults = [
        _forbidden(path, value)
        for path, value in _named(config.model_dump()).items()
        if path != _RAY and not _may_read(path, value, project)
    ]
    if faults:
        raise ConfigError(faults)


def refuse_dataset(dataset: str, project: Project) -> None:
    """Raises ConfigError for a dataset that nobody may read in `project`, as `refuse_paths`."""
    if not _may_read(PATH, dataset, project):
        raise ConfigError([_forbidden(PATH, dataset)])


def _named(config: Mapping[str, Any]) -> dict[str, str]:
    """By its path, each setting that says where something is."""
    agents = config.get("agents") or ()
    told = {f"agents.{place}.model": agent["model"] for place, agent in enumerate(agents)}
    told[PATH] = config.get("problems", {}).get("dataset", GENERATED)
    told[_REWARD] = config.get("inference", {}).get("reward_model")
    told[_RAY] = config.get("compute", {}).get("ray_address")
    return {path: value for path, value in told.items() if value is not None}


def _fault(path: str, value: str) -> dict[str, str] | None:
    """Of what a user wrote; None if it is a name, whatever it stands for."""
    if path == _RAY:
        reason = "whoever runs the server says where Ray is, by RAY_ADDRESS; leave it unset"
        return {"path": path, "value": value, "reason": reason}
    if value.startswith(LOCAL):
        is_known = value.removeprefix(LOCAL) in _listed(_directories(path))
    else:
        is_known = value == GENERATED if path == PATH else False
        is_known = is_known or value.startswith(_beginnings(path))
    return None if is_known else _forbidden(path, value)


def _with_local(config: RunConfig) -> RunConfig:
    def found(path: str, value: str | None) -> str | None:
        if value is None or not value.startswith(LOCAL):
            return value
        return str(_listed(_directories(path))[value.removeprefix(LOCAL)])

    agents = tuple(one.model_copy(update={"model": found("", one.model)}) for one in config.agents)
    problems = {"dataset": found(PATH, config.problems.dataset)}
    inference = {"reward_model": found(_REWARD, config.inference.reward_model)}
    return config.model_copy(
        update={
            "agents": agents,
            "problems": config.problems.model_copy(update=problems),
            "inference": config.inference.model_copy(update=inference),
        }
    )


def _listed(directories: Sequence[Path]) -> dict[str, Path]:
    """What whoever runs the server has put there, by name."""
    there = [path for one in reversed(directories) if one.is_dir() for path in one.iterdir()]
    return {path.name: path.resolve() for path in sorted(there)}


def _may_read(path: str, value: str, project: Project) -> bool:
    if path == PATH and (value == GENERATED or is_reference(value)):
        return True
    if path != PATH and (value.startswith(STARTER) or _is_registered(value, project)):
        return True
    directories = _directories(path)
    return Path(value) in _listed(directories).values() or _lies_in(value, directories)


def _lies_in(path: str, directories: Sequence[Path]) -> bool:
    try:
        resolved = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, a NUL
        return False
    return any(resolved.is_relative_to(directory.resolve()) for directory in directories)


def _is_registered(model: str, project: Project) -> bool:
    is_text = printable(model) == model  # what is not, no database takes
    return is_text and ModelVersion.objects.filter(model__project=project, path=model).exists()


def _directories(path: str) -> Sequence[Path]:
    return settings.DATASETS_DIRS if path == PATH else settings.MODELS_DIRS


def _beginnings(path: str) -> tuple[str, ...]:
    if path == PATH:
        return (BEGINNING,)
    return () if path == _REWARD else (STARTER, PREFIX)


def _forbidden(path: str, value: str) -> dict[str, str]:
    names = sorted(_listed(_directories(path)))
    shown = ", ".join(f"{LOCAL}{name}" for name in names[:_SHOWN]) or "there is none yet"
    others = {PATH: "generated, dataset:NAME/NUMBER or ", _REWARD: ""}
    taken = others.get(path, "starter:NAME, registry:NAME@VERSION or ")
    setting = "GROVE_DATASETS" if path == PATH else "GROVE_MODELS"
    reason = (
        f"no path or address is taken here: write {taken}local:NAME, of what whoever runs the "
        f"server has put into {setting} ({shown})"
    )
    return {"path": path, "value": value, "reason": reason}
