"""REST of experiments: the requested settings, and their runs."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import Count
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from engine.recipes import recipe_names
from webapp.experiments.api.runs import RunOut
from webapp.experiments.launch.creation import (
    Origin,
    create_experiment,
    create_from,
    planned,
    request_from,
)
from webapp.experiments.launch.preflight import preflight
from webapp.experiments.launch.sweeps import Request
from webapp.experiments.models import Experiment, Run
from webapp.experiments.presentation import summary
from webapp.experiments.run_settings.override_schema import (
    Overrides,
    Sweep,
    checked,
    checked_sweep,
    conflicts,
)
from webapp.experiments.run_settings.toml import document
from webapp.experiments.scheduling.queue import refuse_too_many
from webapp.experiments.selectors import visible_runs
from webapp.names import optional_name
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_projects
from webapp.rest.json_types import Integer, integer
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid

router = Router()
Name = optional_name(200)
_WITHOUT_NUL = r"^[^\x00]*$"
_EXAMPLE = {
    "id": 3,
    "name": "How wide",
    "project": 1,
    "created": "2026-11-22T10:00:00Z",
    "created_by": "alice",
    "asked": {"recipe": "demo", "overrides": {"training.minutes": 10}},  # codespell:ignore
    "run_count": 6,
}


class ExperimentListed(Schema):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: int
    name: str
    project: int
    created: datetime
    created_by: str
    asked: dict[str, Any]  # codespell:ignore
    """Recipe, and the overrides of it."""
    run_count: int

    @staticmethod
    def resolve_project(experiment: Experiment) -> int:
        return experiment.project_id

    @staticmethod
    def resolve_created_by(experiment: Experiment) -> str:
        return experiment.created_by.username

    @staticmethod
    def resolve_asked(experiment: Experiment) -> dict[str, Any]:  # codespell:ignore
        return experiment.config


class ExperimentDetail(ExperimentListed):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_EXAMPLE, "runs": []}]})

    runs: list[RunOut]

    @staticmethod
    def resolve_runs(experiment: Experiment, context: Any) -> list[dict[str, Any]]:
        runs = visible_runs(context["request"].user).filter(experiment=experiment.pk)
        return [summary(run) for run in runs.order_by("number")]


class ExperimentList(Schema):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"experiments": [_EXAMPLE], "next": None}]}
    )

    experiments: list[ExperimentListed]
    next: int | None
    """Cursor of the next page, null on the last."""


class NewExperiment(Schema):
    """Requires `recipe`, or `source`: a run whose settings to start from or, with `step`, whose
    checkpoint."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "recipe": "demo",
                    "name": "How wide",
                    "overrides": {"training.minutes": 10},
                    "seeds": [1, 2, 3],
                    "sweep": {"search.nodes_per_tree": [8, 16]},
                }
            ],
            "oneOf": [
                {
                    "properties": {
                        "recipe": {"enum": recipe_names()},
                        "source": {"type": "null"},
                        "step": {"type": "null"},
                    },
                    "required": ["recipe"],
                },
                {
                    "properties": {"recipe": {"const": ""}, "source": {"type": "string"}},
                    "required": ["source"],
                },
            ],
        },
    )

    project: Integer
    recipe: str = Field("", json_schema_extra={"enum": ["", *recipe_names()]})
    source: uuid.UUID | None = None
    step: integer(ge=0, lt=2**31) | None = None
    name: Name = ""
    overrides: Overrides = Overrides({})
    seeds: list[Integer] = Field([], max_length=64)
    sweep: Sweep = Sweep({})


class ExperimentOut(Schema):
    id: int
    name: str
    project: int
    runs: list[RunOut]


class PlannedRun(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"seed": 1, "steps": 40, "variant": {"search.nodes_per_tree": 8}}]
        }
    )

    seed: int
    steps: int
    variant: dict[str, Any]
    """Path to value: the settings that distinguish it in the experiment."""


class FindingOut(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"what": "Memory", "mark": "good", "text": "needs 2 GiB, has 16 GiB"}]
        }
    )

    what: str
    mark: Literal["good", "bad", "warning", "unknown"]
    text: str


class Plan(Schema):
    runs: list[PlannedRun]
    toml: str
    """All settings of the first run."""
    preflight: list[FindingOut]
    """Settings of the first run that do less than they say, whether it fits this machine, whether
    its problems have tests, and the expected time of a step."""


class ExperimentFilters(Cursor):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    """Part of its name, case-insensitive."""


@router.get("", response=ExperimentList)
def list_experiments(request: HttpRequest, query: Query[ExperimentFilters]):
    """Lists the experiments that you may see, in the order of their creation."""
    experiments = _visible(request)
    if query.project is not None:
        experiments = experiments.filter(project=query.project)
    if query.name:
        experiments = experiments.filter(name__icontains=query.name)
    return page(experiments, "experiments", query)


@router.post("", response={201: ExperimentOut})
def create_experiment_of_runs(request: HttpRequest, new: NewExperiment):
    """Creates an experiment with a queued run for every combination of seeds and values to try."""
    project, source = _operable_project(request, new), _source(request, new)
    arguments = project, request.user, _experiment_request(new, source)
    with conflicts():
        experiment = (
            create_from(*arguments, source, new.step) if source else create_experiment(*arguments)
        )
    runs = experiment.runs.select_related("experiment__project", "created_by").order_by("number")
    identity = {"id": experiment.pk, "name": experiment.name, "project": new.project}
    return Status(201, {**identity, "runs": [summary(run) for run in runs]})


@router.post("/check", response=Plan)
def check_experiment(request: HttpRequest, new: NewExperiment):
    """Returns the runs that would be created, without creating them. Invalid settings are refused
    as on creation, path by path."""
    project, source = _operable_project(request, new), _source(request, new)
    origin = Origin(source, new.step) if source and new.step is not None else None
    experiment_request = _experiment_request(new, source)
    with conflicts():
        runs = planned(experiment_request, project, origin)
    refuse_too_many(project, request.user, len(runs))
    config = runs[0].config
    return {
        "runs": [
            {"seed": one.config.seed, "steps": one.config.training.steps, "variant": one.variant}
            for one in runs
        ],
        "toml": document(config.model_dump(mode="json")),
        "preflight": preflight(config, request.user),
    }


def _operable_project(request: HttpRequest, new: NewExperiment) -> Project:
    project = get_object_or_404(visible_projects(request.user), pk=new.project)
    require(request.user, Action.OPERATE, project)
    return project


def _source(request: HttpRequest, new: NewExperiment) -> Run | None:
    if bool(new.recipe) == (new.source is not None):
        raise Invalid("recipe", new.recipe, "give either `recipe` or `source`")
    if new.source is None and new.step is not None:
        raise Invalid("step", new.step, "is a step of `source`: give `source` too")
    if new.source is None:
        return None
    run = visible_runs(request.user).that_train().filter(pk=new.source).first()
    if run is None:
        reason = "there is no such run that trains, or you may not see it"
        raise Invalid("source", str(new.source), reason, 404)
    return run


def _experiment_request(new: NewExperiment, source: Run | None) -> Request:
    fields = {
        "overrides": checked(new.overrides),
        "name": new.name,
        "seeds": new.seeds,
        "sweep": checked_sweep(new.sweep),
    }
    return request_from(source, **fields) if source else Request(new.recipe, **fields)


@router.get("/{int:experiment_id}", response=ExperimentDetail)
def get_experiment(request: HttpRequest, experiment_id: Annotated[int, Path(ge=0, le=LARGEST_ID)]):
    """Returns an experiment with its runs."""
    return get_object_or_404(_visible(request), pk=experiment_id)


def _visible(request: HttpRequest):
    experiments = Experiment.objects.visible_to(request.user).select_related("created_by")
    return experiments.annotate(run_count=Count("runs"))
