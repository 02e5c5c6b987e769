"""REST of searches at test time. A search is a run: for stop, events, trees and shares use
`/runs/{id}`."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field, WithJsonSchema

from engine.events.vocabulary import RunState
from webapp.datasets.models import DatasetVersion
from webapp.datasets.selectors import visible_version
from webapp.experiments.api.experiments import FindingOut
from webapp.experiments.api.runs import Wait
from webapp.experiments.run_settings.override_schema import Overrides, checked, conflicts
from webapp.experiments.run_settings.toml import document
from webapp.experiments.scheduling.queue import refuse_too_many
from webapp.names import optional_name
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import integer, integral
from webapp.rest.pagination import LARGEST_ID
from webapp.rest.problem_details import Invalid
from webapp.searches.launch.preflight import preflight
from webapp.searches.launch.team import choices
from webapp.searches.presentation import answer_of, summary
from webapp.searches.problem_schema import PROBLEM
from webapp.searches.problems import problem_of, recorded_problem, some_problems
from webapp.searches.selectors import searches_page, visible_search
from webapp.searches.services import SearchSpec, create_search, planned

router = Router()
Name = optional_name(200)
in_project = Router()
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
_WITHOUT_NUL = r"^[^\x00]*$"
MEMBER = r"^(starter|registry|package):[^\x00]+$"
_EXAMPLE = {
    "team": ["starter:oak", "starter:fern"],
    "problem": {
        "id": "sort",
        "statement": "Write solve(x), which returns the list x in ascending order.",
        "entry_point": "solve",
        "public_tests": [{"arguments": [[3, 1]], "expected": [1, 3]}],
        "private_tests": [{"arguments": [[2, 2, 1]], "expected": [1, 2, 2]}],
    },
    "overrides": {"search.nodes_per_tree": 16},
}

_EITHER = [
    {
        "properties": {"problem": {"type": "object"}, "dataset_version": {"type": "null"}},
        "required": ["problem"],
    },
    {
        "properties": {"problem": {"type": "null"}, "dataset_version": {"type": "integer"}},
        "required": ["dataset_version"],
    },
]


class Member(Schema):
    name: str
    model: str


class Budget(Schema):
    nodes: int
    tokens: int | None
    seconds: float | None


class AnswerSummary(Schema):
    node: int | None
    agent: str
    passed: int
    """Number of public tests that it passes, of `tests`."""
    tests: int
    private_passed: bool | None
    ended: Literal["nodes", "tokens", "seconds", "solved", "stopped", "failed"]
    """Why no more nodes were opened."""
    nodes: int
    tokens: int
    seconds: float


class Answer(AnswerSummary):
    program: str
    rule: str
    """Rule by which it was chosen among the nodes."""
    reward: float | None
    tree: int | None


class SearchOut(Schema):
    id: uuid.UUID
    """Id of its run."""
    name: str
    project: int
    problem: str
    dataset_version: str | None
    team: list[Member]
    budget: Budget
    created: datetime
    created_by: str
    head_seq: int
    state: RunState
    stop_requested: bool
    error: str
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    waiting: Wait | None
    answer: AnswerSummary | None


class SearchList(Schema):
    searches: list[SearchOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class NewSearch(Schema):
    """Requires `problem`, or `dataset_version` and `problem_id`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [_EXAMPLE], "oneOf": _EITHER}
    )

    team: list[Annotated[str, Field(max_length=200, pattern=MEMBER)]] = Field(
        min_length=1, max_length=64, json_schema_extra={"uniqueItems": True}
    )
    """Agents: `starter:NAME`, `registry:NAME@VERSION` with a number or an alias of this project's
    models, or `package:NAME` of a pretrained model that was added to it."""
    problem: Annotated[dict[str, Any] | None, WithJsonSchema(PROBLEM)] = None
    """A problem in Grove's format, with its tests."""
    dataset_version: integer(ge=0, le=LARGEST_ID) | None = None
    problem_id: str | None = Field(None, max_length=500, pattern=_WITHOUT_NUL)
    overrides: Overrides = Overrides({})
    name: Name = ""


class SearchPlan(Schema):
    toml: str
    """All settings of the search."""
    preflight: list[FindingOut]


class MemberChoice(Schema):
    key: str
    """Entry of `team` in a new search."""
    label: str
    about: str


class ProblemChoice(Schema):
    id: str
    """`problem_id` of a new search."""
    statement: str
    """Beginning of the statement."""


class Page(Schema):
    cursor: int | None = Field(None, ge=0, le=LARGEST_ID)
    """`next` of the previous page."""
    limit: int = Field(50, ge=1, le=200)


@in_project.get("/{project_id}/searches", response=SearchList)
def list_searches(request: HttpRequest, project_id: Id, query: Query[Page]):
    """Lists the searches of a project, newest first."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=project_id)
    result = searches_page(request.user, query.cursor, project.pk, query.limit)
    return {"searches": [summary(one) for one in result.searches], "next": result.next}


@in_project.post("/{project_id}/searches", response={201: SearchOut})
def create_search_in_project(request: HttpRequest, project_id: Id, new: NewSearch):
    """Creates a search of a team on one problem, which is queued immediately."""
    project = _operable(request, project_id)
    spec = _spec(project, new)
    with conflicts():
        search = create_search(project, request.user, spec)
    return Status(201, summary(visible_search(request.user, search.run_id)))


@in_project.post("/{project_id}/searches/check", response=SearchPlan)
def check_search_in_project(request: HttpRequest, project_id: Id, new: NewSearch):
    """Returns the settings that the search would have, and whether it fits, without creating it.
    Invalid settings are refused as on creation."""
    project = _operable(request, project_id)
    spec = _spec(project, new)
    with conflicts():
        config = planned(project, spec.team, spec.overrides)
    refuse_too_many(project, request.user)
    toml = document(config.model_dump(mode="json"))
    return {"toml": toml, "preflight": preflight(project, config, spec.problem)}


@in_project.get("/{project_id}/searches/team", response=list[MemberChoice])
def list_search_members(request: HttpRequest, project_id: Id):
    """Lists the possible members of a team: the starters, then the newest versions of the project's
    models."""
    return choices(get_object_or_404(Project.objects.visible_to(request.user), pk=project_id))


def _operable(request: HttpRequest, project_id: int) -> Project:
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=project_id)
    require(request.user, Action.OPERATE, project)
    return project


def _spec(project: Project, new: NewSearch) -> SearchSpec:
    if (new.problem is None) == (new.dataset_version is None):
        reason = "give either problem, or dataset_version with problem_id"
        raise Invalid("problem", None, reason)
    overrides = checked(new.overrides)
    if new.problem is not None:
        problem = recorded_problem(_with_integers(new.problem))
        return SearchSpec(new.team, problem, None, overrides, new.name)
    versions = DatasetVersion.objects.filter(dataset__project=project)
    version = versions.select_related("dataset__project").filter(pk=new.dataset_version).first()
    if version is None:
        reason = "this project has no such version of a dataset"
        raise Invalid("dataset_version", new.dataset_version, reason, 404)
    with conflicts():
        problem = problem_of(version, new.problem_id or "")
    return SearchSpec(new.team, problem, version, overrides, new.name)


def _with_integers(problem: dict[str, Any]) -> dict[str, Any]:
    """Returns the problem with 1.0 converted to 1 where an integer is required; expected values of
    tests are unchanged."""
    limits = problem.get("limits")
    changed = {"difficulty": problem.get("difficulty"), "limits": limits}
    if isinstance(limits, dict) and "memory_mb" in limits:
        changed["limits"] = {**limits, "memory_mb": integral(limits["memory_mb"])}
    return {**problem, **{k: integral(v) for k, v in changed.items() if k in problem}}


@router.get("/problems/{int:dataset_version_id}", response=list[ProblemChoice])
def list_search_problems(request: HttpRequest, dataset_version_id: Id):
    """Lists the first problems of a dataset version, stored or generated, which a search may
    name."""
    return some_problems(visible_version(request.user, dataset_version_id))


@router.get("/{uuid:run_id}", response=SearchOut)
def get_search(request: HttpRequest, run_id: uuid.UUID):
    return summary(visible_search(request.user, run_id))


@router.get("/{uuid:run_id}/answer", response=Answer | None)
def get_answer(request: HttpRequest, run_id: uuid.UUID):
    """Returns the chosen program, and the rule that chose it; null if there is none yet."""
    return answer_of(visible_search(request.user, run_id).run)
