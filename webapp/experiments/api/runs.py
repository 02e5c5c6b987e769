"""REST of runs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from engine.events.vocabulary import RunState
from engine.recipes import recipe_names
from webapp.experiments import external_engines, services
from webapp.experiments.annotations import annotations
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Star
from webapp.experiments.presentation import summary
from webapp.experiments.run_settings.override_schema import Overrides, checked, conflicts
from webapp.experiments.runs_list.listing import (
    CURSOR,
    LONGEST,
    ORDERS,
    InvalidQuery,
    RunQuery,
    runs_page,
)
from webapp.experiments.selectors import visible_run
from webapp.experiments.tracked_runs import config_of
from webapp.names import optional_name
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import Flag, Integer
from webapp.rest.pagination import LARGEST_ID
from webapp.rest.problem_details import Invalid

router = Router()
Name = optional_name(200)
_WITHOUT_NUL = r"^[^\x00]*$"
_SPACES = r"\s\x00-\x1f\x7f-\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u3000\ufeff"
_TAG = {"type": "string", "pattern": f"^[^,{_SPACES}]+$", "maxLength": annotations.LONGEST_TAG}
_TAGS = {
    "anyOf": [{"type": "array", "items": _TAG, "maxItems": annotations.MOST_TAGS}, {"type": "null"}]
}
_LONGEST = {"maxLength": annotations.LONGEST_NOTES}
_NOTES = {"anyOf": [{"type": "string", "pattern": _WITHOUT_NUL, **_LONGEST}, {"type": "null"}]}


# Runs are serialized from dicts (`presentation.summary`). Plain models read them several times
# as fast as schemas of ninja, which are ready for rows of a database.
class Wait(BaseModel):
    name: str
    since: datetime
    deadline: datetime | None


class RunOut(BaseModel):
    id: uuid.UUID
    name: str
    number: int
    project: int
    seed: int
    variant: dict[str, Any]
    """Path to value: the settings that distinguish it in its experiment."""
    parent: uuid.UUID | None
    """The run from whose checkpoint of `parent_step` it started."""
    parent_step: int | None
    priority: int
    created: datetime
    created_by: str
    epoch: uuid.UUID
    head_seq: int
    outside: bool
    """Whether an external engine runs it and sends its events."""
    tracked: bool
    """Whether another program logs it: its `config` is that program's own."""
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


class RunListed(RunOut):
    starred: bool
    """Whether the caller starred it."""


class RunDetail(RunListed):
    config: dict[str, Any]
    notes: str
    """Markdown."""


class Marks(Schema):
    """Fields to change; omitted fields keep their values."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tags": ["baseline"], "notes": "Seed 3 of five."}]},
    )

    tags: Annotated[list[str] | None, WithJsonSchema(_TAGS)] = None
    notes: Annotated[str | None, WithJsonSchema(_NOTES)] = None
    archived: Flag | None = None
    starred: Flag | None = None


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

    project: Integer
    recipe: str = Field(json_schema_extra={"enum": recipe_names()})
    name: Name = ""
    overrides: Overrides = Overrides({})
    outside: Flag = False
    """An external engine runs it and sends its events (POST /runs/{run_id}/events)."""


class RunList(BaseModel):
    runs: list[RunListed]
    next: str | None
    """Cursor of the next page, null on the last."""


class Filter(Schema):
    state: RunState | None = None
    q: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    """Words that must all occur in the experiment's name, a tag, the project or who started it."""
    tag: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=200, pattern=_WITHOUT_NUL)
    """Part of the experiment's name, case-insensitive."""
    created_by: str = Field("", max_length=150, pattern=_WITHOUT_NUL)
    starred: bool = False
    archived: bool = False
    """Only archived runs; else all others."""
    sort: str = Field("newest", json_schema_extra={"enum": ["newest", "oldest", *ORDERS]})
    """newest or oldest; or name, state, step, seed, by, solved or reward, with - in descending
    order."""
    cursor: str | None = Field(None, max_length=4000, pattern=CURSOR)
    limit: int = Field(50, ge=1, le=200)

    def run_query(self) -> RunQuery:
        """Returns the query. Raises `InvalidQuery` for an unknown value."""
        fields = {
            name: getattr(self, name) for name in ("q", "tag", "project", "name", "created_by")
        }
        return RunQuery(
            state=self.state or "",
            starred=self.starred,
            archived=self.archived,
            sort={"newest": "-created", "oldest": "created"}.get(self.sort, self.sort),
            **fields,
        )


@router.get("", response=RunList)
def list_runs(request: HttpRequest, query: Query[Filter]):
    """Lists the runs that you may see and that match the filters, newest first by default."""
    try:
        page = runs_page(request.user, query.run_query(), query.cursor, query.limit)
    except InvalidQuery as error:
        raise Invalid(error.path, error.value, error.reason, error.status) from None
    runs = [{**summary(run), "starred": run.starred} for run in page.runs]
    return {"runs": runs, "next": page.next}


@router.post("", response={201: RunDetail})
def create_run(request: HttpRequest, new: NewRun):
    """Creates an experiment with one run, which is queued immediately."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.OPERATE, project)
    create = external_engines.create_run if new.outside else create_experiment_with_run
    overrides = checked(new.overrides, any_location=new.outside)
    with conflicts():
        run = create(project, request.user, new.recipe, overrides, new.name)
    return Status(201, detail(request, run.pk))


@router.get("/{uuid:run_id}", response=RunDetail)
def get_run(request: HttpRequest, run_id: uuid.UUID):
    return detail(request, run_id)


@router.patch("/{uuid:run_id}", response=RunDetail)
def mark_run(request: HttpRequest, run_id: uuid.UUID, changes: Marks):
    """Sets the run's tags or notes, archives or restores it; or stars it for yourself, which anyone
    who sees it may. An active run continues when it is archived."""
    run = visible_run(request.user, run_id)
    stars_only = changes.starred is not None and changes == Marks(starred=changes.starred)
    require(request.user, Action.READ if stars_only else Action.OPERATE, run.project)
    try:
        annotations.describe(run.pk, tags=changes.tags, notes=changes.notes)
    except annotations.InvalidAnnotation as error:
        raise Invalid(error.path, error.value, error.reason) from None
    if changes.archived is not None:
        annotations.archive([run.pk], changes.archived)
    if changes.starred is not None:
        annotations.star([run.pk], request.user, changes.starred)
    return detail(request, run_id)


@router.post("/{uuid:run_id}/stop", response=RunDetail)
def stop_run(request: HttpRequest, run_id: uuid.UUID):
    """Requests that a run stop; it can be resumed later."""
    return operate(request, run_id, services.request_stop)


@router.post("/{uuid:run_id}/resume", response=RunDetail)
def resume_run(request: HttpRequest, run_id: uuid.UUID):
    """Queues a stopped or failed run again; it continues from its last checkpoint."""
    return operate(request, run_id, services.resume_run)


def operate(request: HttpRequest, run_id: uuid.UUID, service: Callable) -> dict[str, Any]:
    """Calls `service`, if the user may operate the run, and returns the run afterwards."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, run.project)
    service(run.pk, request.user)
    return detail(request, run_id)


def detail(request: HttpRequest, run_id: uuid.UUID) -> dict[str, Any]:
    """Returns a run as in REST, with its settings."""
    run = visible_run(request.user, run_id)
    starred = Star.objects.filter(run=run, user=request.user.pk).exists()
    details = {"starred": starred, "config": config_of(run), "notes": run.notes}
    return {**summary(run), **details}
