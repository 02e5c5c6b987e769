"""Locations that a run's settings may name: what ships with Grove, what its project holds, and what
the server's operator has listed.

Invariants:
- No path and no address is accepted from a user, only names. A model is `starter:NAME`,
  `registry:NAME@VERSION`, `package:NAME` or `local:NAME`, a dataset `generated`,
  `dataset:NAME/NUMBER` or `local:NAME`, a reward model `local:NAME`, a chat template
  `local:NAME.jinja`; a local name is looked up among those that the directories of GROVE_MODELS and
  GROVE_DATASETS hold.
- A setting's type marks it as a location (`engine.config.locations`), not a list here; a kind
  without a rule is refused.
- The paths that names resolve to are stored with the run, and its clones and forks take them from
  there. Settings of an external engine's run were never located: they are user input.
- Only the operator sets the address of a Ray cluster; any other source is refused. So is the
  address of a judge.
- `hf:ORG/NAME@REVISION` is refused, whatever the server's environment allows its engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.config.errors import printable
from engine.config.locations import Kind, Location, locations, relocated
from engine.config.schema import RunConfig
from webapp.datasets.references import BEGINNING, PATH, is_reference, trainable
from webapp.experiments.run_settings.hub import hub_reason
from webapp.experiments.run_settings.registered_models import (
    PACKAGED,
    REGISTERED,
    STARTER,
    registered_models,
)
from webapp.experiments.scheduling.states import NotAllowed
from webapp.projects.models import Project

GENERATED = "generated"
LOCAL = "local:"
_SHOWN = 20


@dataclass(frozen=True)
class Rule:
    """Names of one kind of location that a user may write."""

    names: str
    """Names other than `local:NAME`, as a message lists them."""
    prefixes: tuple[str, ...]
    """Prefixes of these names; their existence is checked where they are resolved."""
    setting: str
    """The environment variable by which the operator lists directories."""
    directories: Callable[[], Sequence[Path]]
    suffix: str = ""
    """Suffix of a local name."""

    def listed(self) -> dict[str, Path]:
        """Returns the files in the operator's directories, by name."""
        folders = [one for one in reversed(self.directories()) if one.is_dir()]
        files = sorted(path for folder in folders for path in folder.iterdir())
        return {path.name: path.resolve() for path in files if path.name.endswith(self.suffix)}


def _models() -> Sequence[Path]:
    return settings.MODELS_DIRS


def _datasets() -> Sequence[Path]:
    return settings.DATASETS_DIRS


RULES = {
    Kind.MODEL: Rule("starter:NAME, registry:NAME@VERSION, package:NAME or ",
                     (STARTER, REGISTERED, PACKAGED), "GROVE_MODELS", _models),
    Kind.DATASET: Rule("generated, dataset:NAME/NUMBER or ", (BEGINNING,),
                       "GROVE_DATASETS", _datasets),
    Kind.REWARD_MODEL: Rule("", (), "GROVE_MODELS", _models),
    Kind.CHAT_TEMPLATE: Rule("", (), "GROVE_MODELS", _models, ".jinja"),
}  # fmt: skip
"""Rules by kind; `Kind.CLUSTER` and `Kind.ENDPOINT` have none."""


def located(
    config: RunConfig, project: Project, base: Mapping[str, Any] | None = None
) -> RunConfig:
    """Returns the settings with names resolved to paths of this machine.

    `base` is the located settings from which these were made, whose paths are trusted. Never those
    of a run of an external engine.

    Raises:
        ConfigError: a path or an address instead of a name, a name that does not exist, or a stored
            dataset that may not be trained on.
    """
    trusted = {(one.kind, one.value) for one in locations(RunConfig, base or {})}
    if problems := [
        _forbidden(one)
        for one in locations(RunConfig, config)
        if one.kind not in RULES or ((one.kind, one.value) not in trusted and not _is_name(one))
    ]:
        raise NotAllowed(problems)
    located_config = relocated(registered_models().resolved(config, project), _local_path)
    if is_reference(located_config.problems.dataset):
        trainable(project, located_config.problems.dataset)
    refuse_paths(located_config, project)
    return located_config


def refuse_paths(config: RunConfig, project: Project) -> None:
    """Raises `ConfigError` with each path in located settings that a run in `project` may not
    read."""
    values = locations(RunConfig, config)
    if problems := [_forbidden(one) for one in values if not _may_read(one, project)]:
        raise NotAllowed(problems)


def refuse_foreign(config: Any) -> None:
    """Raises `ConfigError` for what settings from the browser or REST may never name: a cluster, or
    a chat template that the operator has not listed. `config`: settings, or plain data."""
    rule = RULES[Kind.CHAT_TEMPLATE]
    if problems := [
        _forbidden(one)
        for one in locations(RunConfig, config)
        if one.kind not in RULES
        or (one.kind is Kind.CHAT_TEMPLATE and Path(one.value) not in rule.listed().values())
    ]:
        raise NotAllowed(problems)


def refuse_cluster(config: RunConfig) -> None:
    """Raises `ConfigError` if the settings name a Ray cluster."""
    if problems := [
        _forbidden(one) for one in locations(RunConfig, config) if one.kind not in RULES
    ]:
        raise NotAllowed(problems)


def refuse_dataset(dataset: str, project: Project) -> None:
    """Raises `ConfigError` for a dataset that nobody may read in `project`, as `refuse_paths`."""
    one = Location(PATH, Kind.DATASET, dataset)
    if not _may_read(one, project):
        raise NotAllowed([_forbidden(one)])


def _is_name(one: Location) -> bool:
    """Returns whether a user may write this name, whatever it resolves to."""
    rule = RULES[one.kind]
    if one.value.startswith(LOCAL):
        return one.value.removeprefix(LOCAL) in rule.listed()
    if one.kind is Kind.DATASET and one.value == GENERATED:
        return True
    return bool(rule.prefixes) and one.value.startswith(rule.prefixes)


def _local_path(one: Location) -> str:
    if not one.value.startswith(LOCAL):
        return one.value
    return str(RULES[one.kind].listed()[one.value.removeprefix(LOCAL)])


def _may_read(one: Location, project: Project) -> bool:
    kind, value = one.kind, one.value
    if kind not in RULES:
        return False
    rule = RULES[kind]
    if kind is Kind.DATASET and (value == GENERATED or is_reference(value)):
        return True
    if kind is Kind.MODEL and (value.startswith(STARTER) or _is_registered(value, project)):
        return True
    if Path(value) in rule.listed().values():
        return True
    return not rule.suffix and _lies_in(value, rule.directories())


def _lies_in(path: str, directories: Sequence[Path]) -> bool:
    try:
        resolved = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a symlink loop, a NUL
        return False
    return any(resolved.is_relative_to(directory.resolve()) for directory in directories)


def _is_registered(model: str, project: Project) -> bool:
    is_text = printable(model) == model  # the database stores no other text
    return is_text and registered_models().has_directory(model, project)


def _forbidden(one: Location) -> dict[str, str]:
    rule = RULES.get(one.kind)
    if one.kind is Kind.ENDPOINT:
        reason = "addresses are not accepted: leave it out, or start the run on the command line"
        return {"path": one.path, "value": one.value, "reason": reason}
    if rule is None:
        reason = "the server's operator sets Ray's address (RAY_ADDRESS); leave it unset"
        return {"path": one.path, "value": one.value, "reason": reason}
    if reason := hub_reason(one.path, one.value):
        return {"path": one.path, "value": one.value, "reason": reason}
    names = ", ".join(f"{LOCAL}{name}" for name in sorted(rule.listed())[:_SHOWN])
    reason = (
        f"paths and addresses are not accepted: write {rule.names}local:NAME{rule.suffix}, a "
        f"name in the operator's {rule.setting} ({names or 'which lists none yet'})"
    )
    return {"path": one.path, "value": one.value, "reason": reason}
