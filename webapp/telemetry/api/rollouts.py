"""REST of rollouts that another trainer made."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from pydantic import ConfigDict, Field, StringConstraints

from webapp.experiments.api.runs import RunDetail, detail
from webapp.experiments.api.tracking import KEY, LINE
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import Flag, Integer, Real, integer
from webapp.telemetry.ingest.rollouts import import_rollouts

router = Router()
MOST_ROLLOUTS = 50_000
Text = Annotated[str, StringConstraints(max_length=8_000_000)]
"""A text that UTF-8 can write: one without any limit may hold half a surrogate pair."""


class Rollout(Schema):
    """One answer of a trainer; see *Rollouts of any trainer*."""

    model_config = ConfigDict(extra="forbid")

    problem: Text = Field(min_length=1)
    """Rollouts of one step with the same problem are one tree."""
    text: Text
    reward: Real | None
    """Null if it could not be computed; 1 or more is solved."""
    parent: Integer | Text | None = None
    """`id` of an earlier rollout of the same tree; null for the problem."""
    id: Integer | Text | None = None
    """What `parent` refers to; null for the number of the rollout, from 1."""
    agent: str = Field("policy", min_length=1, max_length=100)
    tokens: integer(ge=0, lt=2**31) = 0
    step: integer(ge=0, lt=2**31) = 1
    advantage: Real | None = None
    cut: Flag = False
    """Whether the answer ended at its limit of tokens."""
    group: Text = ""
    """Distinguishes several trees of a step with the same problem."""


class RolloutsIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "name": "GRPO, step 3",
                    "rollouts": [
                        {"problem": "2 + 2?", "text": "5", "reward": 0.0, "tokens": 2},
                        {"problem": "2 + 2?", "text": "4", "reward": 1.0, "parent": 1},
                    ],
                }
            ]
        },
    )

    project: Integer
    rollouts: list[Rollout] = Field(min_length=1, max_length=MOST_ROLLOUTS)
    id: str = Field("", pattern=rf"^$|{KEY}")
    """Id of the run, unique in the project; empty for one that follows from the rollouts."""
    name: str = Field("", max_length=200, pattern=LINE)


@router.post("/rollouts", response=RunDetail)
def add_rollouts(request: HttpRequest, given: RolloutsIn) -> dict[str, Any]:
    """Creates a finished run of rollouts of any trainer, drawn as its trees: all of them, or none
    if one cannot be used. The same rollouts sent again give the same run."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=given.project)
    require(request.user, Action.OPERATE, project)
    rows = [rollout.model_dump(exclude_unset=True) for rollout in given.rollouts]
    run = import_rollouts(project, request.user, rows, given.id, given.name)
    return detail(request, run.pk)
