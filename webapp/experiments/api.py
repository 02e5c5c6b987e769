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
from webapp.experiments import marks, outside, services
from webapp.experiments.listing import LONGEST, Unusable, Wish, runs_page
from webapp.experiments.models import Run, Star
from webapp.experiments.presentation import summary
from webapp.experiments.selectors import visible_run
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
    tags: list[str]
    archived_at: datetime | None
    starred: bool
    """By whoever asks."""


class RunDetail(RunOut):
    config: dict[str, Any]
    notes: str
    """Markdown."""


class Marks(Schema):
    """What to change; what is left out stays."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tags": ["baseline"], "notes": "Seed 3 of five."}]},
    )

    tags: list[str] | None = None
    notes: str | None = None
    archived: bool | None = None
    starred: bool | None = None


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
    q: str = Field("", max_length=LONGEST)
    """Words that all stand in the experiment's name, a tag, the project or who started it."""
    tag: str = Field("", max_length=LONGEST)
    project: int | None = Field(None, ge=1, lt=2**63)
    starred: bool = False
    archived: bool = False
    """The archived runs; else all others."""
    sort: str = Field("-created", max_length=20)
    """created, name, state, step, seed, by, solved or reward; with - the greatest first."""
    cursor: str | None = None
    limit: int = Field(50, ge=1, le=200)

    def wish(self) -> Wish:
        return Wish(
            state=self.state or "",
            q=self.q,
            tag=self.tag,
            project=self.project,
            starred=self.starred,
            archived=self.archived,
            sort=self.sort,
        )


class Recipe(Schema):
    name: str
    config: dict[str, Any]


@router.get("", response=RunList)
def list_runs(request: HttpRequest, query: Query[Filter]):
    """Runs, newest first unless `sort` says otherwise."""
    try:
        page = runs_page(request.user, query.wish(), query.cursor, query.limit)
    except Unusable as error:
        raise Invalid(error.path, error.value, error.reason) from None
    runs = [_told(run, run.starred) for run in page.runs]
    return {"runs": runs, "next": page.next}


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


@router.patch("/{uuid:run_id}", response=RunDetail)
def mark_run(request: HttpRequest, run_id: uuid.UUID, told: Marks):
    """Set its tags or notes, archive or restore it, star it for yourself. A run under way that is
    archived goes on."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, run.project)
    try:
        marks.describe(run.pk, tags=told.tags, notes=told.notes)
    except marks.BadMark as error:
        raise Invalid(error.path, error.value, error.reason) from None
    if told.archived is not None:
        marks.archive([run.pk], told.archived)
    if told.starred is not None:
        marks.star([run.pk], request.user, told.starred)
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
    starred = Star.objects.filter(run=run, user=request.user.pk).exists()
    return {**_told(run, starred), "config": run.config, "notes": run.notes}


def _told(run: Run, starred: bool) -> dict[str, Any]:
    marked = {"tags": run.tags, "archived_at": run.archived_at, "starred": starred}
    return {**summary(run), **marked}
