"""REST of experiments: what was asked for, and the runs that came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.db.models import Count
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Schema
from pydantic import ConfigDict, Field

from webapp.experiments.api import NewExperiment, RunOut
from webapp.experiments.api import experiments as router
from webapp.experiments.creation import planned
from webapp.experiments.models import Experiment
from webapp.experiments.presentation import summary
from webapp.experiments.selectors import visible_runs
from webapp.experiments.sweeps import Request
from webapp.paging import LARGEST_ID, Cursor, page
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_projects

_EXAMPLE = {
    "id": 3,
    "name": "How wide",
    "project": 1,
    "created": "2026-11-22T10:00:00Z",
    "created_by": "alice",
    "asked": {"recipe": "demo", "overrides": {"training.minutes": 10}},
    "run_count": 6,
}


class ExperimentListed(Schema):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: int
    name: str
    project: int
    created: datetime
    created_by: str
    asked: dict[str, Any]
    """Recipe, and what was changed of it."""
    run_count: int

    @staticmethod
    def resolve_project(experiment: Experiment) -> int:
        return experiment.project_id

    @staticmethod
    def resolve_created_by(experiment: Experiment) -> str:
        return experiment.created_by.username

    @staticmethod
    def resolve_asked(experiment: Experiment) -> dict[str, Any]:
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


class PlannedRun(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"seed": 1, "steps": 40, "variant": {"search.nodes_per_tree": 8}}]
        }
    )

    seed: int
    steps: int
    variant: dict[str, Any]
    """Path to value: what sets it apart in the experiment."""


class Plan(Schema):
    runs: list[PlannedRun]


class Asked(Cursor):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    """Part of its name, in whatever case."""


@router.get("", response=ExperimentList)
def list_experiments(request: HttpRequest, asked: Query[Asked]):
    """Experiments that you may see, in the order in which they were made."""
    found = _visible(request)
    if asked.project is not None:
        found = found.filter(project=asked.project)
    if asked.name:
        found = found.filter(name__icontains=asked.name)
    return page(found, "experiments", asked)


@router.post("/check", response=Plan)
def check_experiment(request: HttpRequest, new: NewExperiment):
    """The runs that would come of it; nothing is made. What cannot run is refused as it would be
    then, path by path."""
    project = get_object_or_404(visible_projects(request.user), pk=new.project)
    require(request.user, Action.OPERATE, project)
    wanted = Request(new.recipe, new.overrides, new.name, new.seeds, new.sweep)
    runs = [
        {"seed": one.config.seed, "steps": one.config.training.steps, "variant": one.variant}
        for one in planned(wanted, project)
    ]
    return {"runs": runs}


@router.get("/{int:experiment_id}", response=ExperimentDetail)
def get_experiment(request: HttpRequest, experiment_id: Annotated[int, Path(ge=0, le=LARGEST_ID)]):
    """One experiment with its runs."""
    return get_object_or_404(_visible(request), pk=experiment_id)


def _visible(request: HttpRequest):
    found = Experiment.objects.visible_to(request.user).select_related("created_by")
    return found.annotate(run_count=Count("runs"))
