"""REST of runs and recipes."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Header, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from engine.events import RunState
from engine.recipes import recipe_data, recipe_names
from webapp.experiments import outside, services
from webapp.experiments.presentation import summary
from webapp.experiments.selectors import runs_page, visible_run
from webapp.problems import Invalid
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require

router = Router()
recipes = Router()


class Wait(Schema):
    name: str
    since: datetime
    deadline: datetime | None


class RunOut(Schema):
    id: uuid.UUID
    name: str
    number: int
    project: int
    seed: int
    created: datetime
    created_by: str
    epoch: uuid.UUID
    head_seq: int
    outside: bool
    """Whether its engine runs elsewhere and sends its events."""
    state: RunState
    stop_requested: bool
    step: int
    steps: int
    waiting: Wait | None
    error: str
    restarts: int
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any]


class RunDetail(RunOut):
    config: dict[str, Any]


class RunList(Schema):
    runs: list[RunOut]
    next: str | None
    """Cursor of the next page, null on the last."""


class NewRun(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "recipe": "demo",
                    "name": "Wider trees",
                    "overrides": {"search.nodes_per_tree": 16, "training.minutes": 10},
                }
            ]
        },
    )

    project: int
    recipe: str
    name: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    overrides: dict[str, Any] = {}
    """Dotted path to value."""
    outside: bool = False
    """Its engine runs elsewhere and sends its events (POST /runs/{run_id}/events)."""


class Filter(Schema):
    state: RunState | None = None
    cursor: str | None = None
    limit: int = Field(50, ge=1, le=200)


class Recipe(Schema):
    name: str
    config: dict[str, Any]


@router.get("", response=RunList)
def list_runs(request: HttpRequest, query: Query[Filter]):
    """Runs, newest first."""
    try:
        page = runs_page(request.user, query.state, query.cursor, query.limit)
    except ValueError:
        reason = "give the `next` of an earlier page, or none"
        raise Invalid("cursor", query.cursor, reason) from None
    return {"runs": [summary(run) for run in page.runs], "next": page.next}


@router.post("", response={201: RunDetail})
def create_run(
    request: HttpRequest,
    new: NewRun,
    key: str | None = Header(None, alias="Idempotency-Key", min_length=1, max_length=200),
):
    """An experiment with one run, queued at once. Asked again with the same `Idempotency-Key`, the
    answer is the run that was made then, as it is now."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.OPERATE, project)
    make = outside.create_run if new.outside else services.create_experiment_with_run
    asked = (project, request.user, new.recipe, new.overrides, new.name)
    try:
        made = services.create_once(key, make, *asked)
    except services.KeyReused:
        reason = "it stands for another request already: give each its own"
        raise Invalid("Idempotency-Key", key, reason) from None
    return Status(201, _detail(request, made.pk))


@router.get("/{uuid:run_id}", response=RunDetail)
def get_run(request: HttpRequest, run_id: uuid.UUID):
    return _detail(request, run_id)


@router.post("/{uuid:run_id}/stop", response=RunDetail)
def stop_run(request: HttpRequest, run_id: uuid.UUID):
    """Ask a run to stop; it can be resumed later."""
    return _operate(request, run_id, services.request_stop)


@router.post("/{uuid:run_id}/resume", response=RunDetail)
def resume_run(request: HttpRequest, run_id: uuid.UUID):
    """Queue a stopped or failed run again; it goes on from its last checkpoint."""
    return _operate(request, run_id, services.resume_run)


@recipes.get("", response=list[Recipe])
def list_recipes(request: HttpRequest):
    """Named settings to start from."""
    return [{"name": name, "config": recipe_data(name)} for name in recipe_names()]


def _operate(request: HttpRequest, run_id: uuid.UUID, service) -> dict[str, Any]:
    run = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, run.project)
    service(run.pk)
    return _detail(request, run_id)


def _detail(request: HttpRequest, run_id: uuid.UUID) -> dict[str, Any]:
    run = visible_run(request.user, run_id)
    return {**summary(run), "config": run.config}
