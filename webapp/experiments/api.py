"""REST of runs and recipes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Header, Query, Router, Schema, Status
from pydantic import BaseModel, ConfigDict, Field, create_model

from engine.events import RunState
from engine.recipes import recipe_data, recipe_names
from webapp.accounts.models import User
from webapp.experiments import marks, outside, services
from webapp.experiments.creation import KeyReused, Made, create_experiment, once
from webapp.experiments.listing import LONGEST, Unusable, Wish, runs_page
from webapp.experiments.models import Experiment, Star
from webapp.experiments.presentation import summary
from webapp.experiments.selectors import visible_run
from webapp.experiments.sweeps import Request
from webapp.paging import LARGEST_ID
from webapp.problems import Invalid
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require

router = Router()
recipes = Router()
experiments = Router()
_WITHOUT_NUL = r"^[^\x00]*$"


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
    variant: dict[str, Any]
    """Path to value: what sets it apart in its experiment."""
    parent: uuid.UUID | None
    """The run from whose checkpoint of `parent_step` it started."""
    parent_step: int | None
    priority: int
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


class RunListed(RunOut):
    starred: bool
    """By whoever asks."""


class RunDetail(RunListed):
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


class Wanted(Schema):
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
    name: str = Field("", max_length=200, pattern=_WITHOUT_NUL)
    overrides: dict[str, Any] = {}
    """Dotted path to value."""


class NewRun(Wanted):
    outside: bool = False
    """Its engine runs elsewhere and sends its events (POST /runs/{run_id}/events)."""


class NewExperiment(Wanted):
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
            ]
        },
    )

    seeds: list[int] = Field([], max_length=64)
    sweep: dict[str, list[Any]] = {}
    """Values to try, by path; every combination with every seed is a run, 64 at most."""


class ExperimentOut(Schema):
    id: int
    name: str
    project: int
    runs: list[RunOut]


# Every field but the id may be left out where only some are asked for. Rows come as dicts: a plain
# model reads them ten times as fast as one that is ready for rows of a database.
RunRow = create_model(
    "RunRow",
    __base__=BaseModel,
    **{
        name: (field.annotation, ... if name == "id" else None)
        for name, field in RunListed.model_fields.items()
    },
)


class RunList(BaseModel):
    runs: list[RunRow]
    next: str | None
    """Cursor of the next page, null on the last."""


class Filter(Schema):
    state: RunState | None = None
    q: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    """Words that all stand in the experiment's name, a tag, the project or who started it."""
    tag: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=200, pattern=_WITHOUT_NUL)
    """Part of the experiment's name, in whatever case."""
    created_by: str = Field("", max_length=150, pattern=_WITHOUT_NUL)
    starred: bool = False
    archived: bool = False
    """The archived runs; else all others."""
    sort: str = Field("newest", max_length=20)
    """newest or oldest; or name, state, step, seed, by, solved or reward, with - the greatest
    first."""
    fields: str | None = Field(None, max_length=400, pattern=_WITHOUT_NUL)
    """Names of fields, with commas between them; the id is always told."""
    cursor: str | None = None
    limit: int = Field(50, ge=1, le=200)

    def wish(self) -> Wish:
        """Raises `Unusable` for what does not exist."""
        told = {name: getattr(self, name) for name in ("q", "tag", "project", "name", "created_by")}
        return Wish(
            state=self.state or "",
            starred=self.starred,
            archived=self.archived,
            sort={"newest": "-created", "oldest": "created"}.get(self.sort, self.sort),
            **told,
        )

    def columns(self) -> set[str]:
        """The fields that are asked for."""
        if self.fields is None:
            return set(RunListed.model_fields)
        asked = {name.strip() for name in self.fields.split(",") if name.strip()}
        if unknown := asked - RunListed.model_fields.keys():
            names = ", ".join(RunListed.model_fields)
            raise Invalid("fields", ", ".join(sorted(unknown)), f"there are {names}")
        return asked | {"id"}


class Recipe(Schema):
    name: str
    config: dict[str, Any]


@router.get("", response=RunList, exclude_unset=True)
def list_runs(request: HttpRequest, query: Query[Filter]):
    """Runs, newest first; all that you may see, or those of which the filters hold."""
    columns = query.columns()
    try:
        page = runs_page(request.user, query.wish(), query.cursor, query.limit)
    except Unusable as error:
        raise Invalid(error.path, error.value, error.reason) from None
    told = [{**summary(run), "starred": run.starred} for run in page.runs]
    rows = [{name: one[name] for name in columns} for one in told]
    return {"runs": rows, "next": page.next}


@router.post("", response={201: RunDetail})
def create_run(
    request: HttpRequest,
    new: NewRun,
    key: str | None = Header(None, alias="Idempotency-Key", min_length=1, max_length=200),
):
    """An experiment with one run, queued at once. Asked again with the same `Idempotency-Key`, the
    answer is the run that was made then, as it is now."""
    make = _made_outside if new.outside else create_experiment
    wanted = Request(new.recipe, new.overrides, new.name)
    experiment = _create(request, new, make, wanted, key)
    return Status(201, detail(request, experiment.runs.get(number=1).pk))


@experiments.post("", response={201: ExperimentOut})
def create_experiment_of_runs(
    request: HttpRequest,
    new: NewExperiment,
    key: str | None = Header(None, alias="Idempotency-Key", min_length=1, max_length=200),
):
    """One experiment with a run for every combination of seeds and values to try, all queued."""
    wanted = Request(new.recipe, new.overrides, new.name, new.seeds, new.sweep)
    experiment = _create(request, new, create_experiment, wanted, key)
    runs = experiment.runs.select_related("experiment__project", "created_by").order_by("number")
    told = {"id": experiment.pk, "name": experiment.name, "project": new.project}
    return Status(201, {**told, "runs": [summary(run) for run in runs]})


def _made_outside(project: Project, user: User, wanted: Request) -> Experiment:
    asked = (wanted.recipe, dict(wanted.overrides), wanted.name)
    return outside.create_run(project, user, *asked).experiment


def _create(
    request: HttpRequest,
    new: Wanted,
    make: Callable[..., Experiment],
    wanted: Request,
    key: str | None,
) -> Experiment:
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.OPERATE, project)
    asked = [type(new).__name__, new.dict()]
    return once_or_invalid(key, request.user, asked, partial(make, project, request.user, wanted))


def once_or_invalid(
    key: str | None,
    user: User,
    asked: Any,
    make: Callable[[], Made],
    kind: type[Made] = Experiment,  # type: ignore[assignment]
) -> Made:
    """As `once`; a key that stands for another request is a fault of the header."""
    try:
        return once(key, user, asked, make, kind)
    except KeyReused:
        reason = "it stands for another request already: give each its own"
        raise Invalid("Idempotency-Key", key, reason) from None


@router.get("/{uuid:run_id}", response=RunDetail)
def get_run(request: HttpRequest, run_id: uuid.UUID):
    return detail(request, run_id)


@router.patch("/{uuid:run_id}", response=RunDetail)
def mark_run(request: HttpRequest, run_id: uuid.UUID, told: Marks):
    """Set its tags or notes, archive or restore it; star it for yourself, as whoever sees it may. A
    run under way that is archived goes on."""
    run = visible_run(request.user, run_id)
    stars_only = told.starred is not None and told == Marks(starred=told.starred)
    require(request.user, Action.READ if stars_only else Action.OPERATE, run.project)
    try:
        marks.describe(run.pk, tags=told.tags, notes=told.notes)
    except marks.BadMark as error:
        raise Invalid(error.path, error.value, error.reason) from None
    if told.archived is not None:
        marks.archive([run.pk], told.archived)
    if told.starred is not None:
        marks.star([run.pk], request.user, told.starred)
    return detail(request, run_id)


@router.post("/{uuid:run_id}/stop", response=RunDetail)
def stop_run(request: HttpRequest, run_id: uuid.UUID):
    """Ask a run to stop; it can be resumed later."""
    return operate(request, run_id, services.request_stop)


@router.post("/{uuid:run_id}/resume", response=RunDetail)
def resume_run(request: HttpRequest, run_id: uuid.UUID):
    """Queue a stopped or failed run again; it goes on from its last checkpoint."""
    return operate(request, run_id, services.resume_run)


@recipes.get("", response=list[Recipe])
def list_recipes(request: HttpRequest):
    """Named settings to start from."""
    return [{"name": name, "config": recipe_data(name)} for name in recipe_names()]


def operate(request: HttpRequest, run_id: uuid.UUID, service: Callable) -> dict[str, Any]:
    """Do it, if the user may; the run as it is then."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, run.project)
    service(run.pk, request.user)
    return detail(request, run_id)


def detail(request: HttpRequest, run_id: uuid.UUID) -> dict[str, Any]:
    """A run as REST tells it, with its settings."""
    run = visible_run(request.user, run_id)
    starred = Star.objects.filter(run=run, user=request.user.pk).exists()
    rest = {"starred": starred, "config": run.config, "notes": run.notes}
    return {**summary(run), **rest}
