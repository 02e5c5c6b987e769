"""Creation of a search: an experiment of one run, queued as any other.

Invariant: a search is created only if its team, problem, settings and paths are valid.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.config.errors import ConfigError, printable
from engine.config.schema import RunConfig, parse_config
from engine.problems.problem import Problem
from engine.problems.records import record
from engine.recipes import override
from engine.resources.machine_cores import machine_cores
from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.models import Experiment, Run, RunAction
from webapp.experiments.run_settings.bounds import refuse_beyond_machine
from webapp.experiments.run_settings.isolation import refuse_beyond_caps, refuse_unsafe
from webapp.experiments.run_settings.paths import located
from webapp.experiments.scheduling.dispatch import dispatch_on_commit
from webapp.experiments.scheduling.queue import admit
from webapp.projects.models import Project
from webapp.registry.services import note_uses
from webapp.searches.launch.team import agents_of
from webapp.searches.models import Search

RECIPE = "search"
"""Recipe name in the settings of a search; no training recipe has this name."""
_NAME_CHARS: int = Experiment._meta.get_field("name").max_length
_BUDGET = {"nodes_per_tree": 24, "nodes_in_flight": 4, "stop_when_solved": True}
_MOST_WORKERS = 4


@dataclass(frozen=True)
class SearchSpec:
    """A requested search; `team` is keys of `launch.team`, `overrides` are by dotted path."""

    team: Sequence[str]
    problem: Problem
    version: DatasetVersion | None = None
    """Dataset version of the problem, if it is from a dataset."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def base_settings(agents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the settings of a search by these agents before any change."""
    return {
        "recipe": RECIPE,
        "agents": list(agents),
        "loss": {"kl_coefficient": 0.0},  # no reference weights: nothing is trained
        "search": dict(_BUDGET),
        "sandbox": {"workers": min(_MOST_WORKERS, machine_cores())},
    }


def planned(project: Project, team: Sequence[str], overrides: Mapping[str, Any]) -> RunConfig:
    """Returns the settings that a search would have.

    Raises:
        ConfigError: they cannot run, or not in this project.
    """
    return _planned(project, team, overrides)[0]


def _planned(
    project: Project, team: Sequence[str], overrides: Mapping[str, Any]
) -> tuple[RunConfig, dict[str, Any]]:
    """Returns the same, and the plain settings before they were completed and located."""
    base = base_settings(agents_of(project, team))
    data = copy.deepcopy(base)
    override(data, dict(overrides))
    if not any(path in overrides for path in ("search", "search.nodes_in_flight")):
        _fit_in_flight(data["search"])
    config = parse_config(data)
    refuse_unsafe(config, project)
    refuse_beyond_caps(config)
    refuse_beyond_machine(config)
    return located(config, project, base), data


def _fit_in_flight(search: dict[str, Any]) -> None:
    """Lowers the default of nodes in flight to the tree's maximum number of nodes."""
    nodes = search["nodes_per_tree"]
    if type(nodes) is int and nodes > 0:
        search["nodes_in_flight"] = min(_BUDGET["nodes_in_flight"], nodes)


@transaction.atomic
def create_search(project: Project, user: User, spec: SearchSpec) -> Search:
    """Creates a queued search.

    Raises:
        ConfigError: as `planned`; nothing was created.
        NotNow: too many runs are queued or active (`queue.admit`).
    """
    config, given = _planned(project, spec.team, spec.overrides)
    problem = record(spec.problem)
    _refuse_unstorable(problem)
    admit(project, user)
    name = (spec.name or f"Search {problem['id']}")[:_NAME_CHARS]
    requested = {"recipe": RECIPE, "team": list(spec.team), "overrides": dict(spec.overrides)}
    experiment = Experiment.objects.create(
        project=project, name=name, created_by=user, config=requested
    )
    run = Run.objects.create(
        experiment=experiment,
        number=1,
        config=config.model_dump(mode="json"),
        given=given,
        seed=config.seed,
        steps=1,
        dataset_version=spec.version,
        created_by=user,
        queued_at=timezone.now(),
    )
    search = Search.objects.create(run=run, problem=problem)
    note_uses(run)
    note_action(run, user, RunAction.Kind.STARTED)
    dispatch_on_commit(run.pk)
    return search


def _refuse_unstorable(problem: dict[str, Any]) -> None:
    if faulty := [name for name, value in problem.items() if not _storable(value)]:
        reason = "holds a character that cannot be stored (NUL, half of a pair); remove it"
        raise ConfigError([{"path": name, "value": "...", "reason": reason} for name in faulty])


def _storable(value: Any) -> bool:
    """Returns whether the database can store every text in the value."""
    if isinstance(value, str):
        return printable(value) == value
    if isinstance(value, dict):
        return all(_storable(one) for pair in value.items() for one in pair)
    return all(map(_storable, value)) if isinstance(value, list) else True
