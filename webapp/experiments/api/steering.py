"""REST of operations on an existing run: kill, priority, notes, clone, fork."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.experiments import services
from webapp.experiments.annotations.actions import actions_of
from webapp.experiments.api.runs import RunDetail, detail, operate
from webapp.experiments.forms import HIGHEST, LOWEST
from webapp.experiments.launch.checkpoints import checkpoint_steps
from webapp.experiments.launch.creation import clone_run as create_clone
from webapp.experiments.launch.creation import fork_run as create_fork
from webapp.experiments.models import Run
from webapp.experiments.run_settings.override_schema import Overrides, checked, conflicts
from webapp.experiments.selectors import visible_run
from webapp.names import optional_name
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import Integer

router = Router()
Name = optional_name(200)

TEXT = r"^[^\x00]*$"


class Priority(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"priority": 10}]})

    priority: Integer = Field(ge=LOWEST, le=HIGHEST)


class Note(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Entropy falls too fast."}]}
    )

    text: str = Field(min_length=1, max_length=4000, pattern=TEXT)


class Fork(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"step": 20, "overrides": {"loss.kl_coefficient": 0.0}, "name": "No KL"}]
        },
    )

    step: Integer = Field(ge=0, lt=2**31)
    overrides: Overrides = Overrides({})
    """Settings to change."""
    name: Name = ""


class ActionOut(Schema):
    kind: str
    user: str
    detail: str
    at: datetime


class Told(Schema):  # codespell:ignore
    actions: list[ActionOut]


class Checkpoints(Schema):
    steps: list[int]


@router.post("/{uuid:run_id}/kill", response=RunDetail)
def kill_run(request: HttpRequest, run_id: uuid.UUID):
    """Ends a run immediately; updates since its last checkpoint are lost. It can be resumed."""
    return operate(request, run_id, services.request_kill)


@router.post("/{uuid:run_id}/priority", response=RunDetail)
def set_priority(request: HttpRequest, run_id: uuid.UUID, new: Priority):
    """Sets the priority: of a workspace's queued runs those of higher priority start first."""
    return operate(request, run_id, lambda pk, user: services.set_priority(pk, new.priority, user))


@router.post("/{uuid:run_id}/notes", response={201: Told})  # codespell:ignore
def write_note(request: HttpRequest, run_id: uuid.UUID, note: Note):
    """Records a note on the run, with your name and the time."""
    operate(request, run_id, lambda pk, user: services.write_note(pk, note.text, user))
    return Status(201, _actions(visible_run(request.user, run_id)))


@router.get("/{uuid:run_id}/actions", response=Told)  # codespell:ignore
def get_actions(request: HttpRequest, run_id: uuid.UUID):
    """Lists who did what to the run, newest first."""
    return _actions(visible_run(request.user, run_id))


@router.get("/{uuid:run_id}/checkpoints", response=Checkpoints)
def get_checkpoints(request: HttpRequest, run_id: uuid.UUID):
    """Lists the steps whose checkpoints can be forked, newest first."""
    return {"steps": checkpoint_steps(visible_run(request.user, run_id))}


@router.post("/{uuid:run_id}/clone", response={201: RunDetail})
def clone_run(request: HttpRequest, run_id: uuid.UUID):
    """Creates a new experiment with the same settings."""
    clone = create_clone(_operable(request, run_id), request.user)
    return Status(201, detail(request, clone.pk))


@router.post("/{uuid:run_id}/fork", response={201: RunDetail})
def fork_run(request: HttpRequest, run_id: uuid.UUID, new: Fork):
    """Creates a run that starts with the weights and optimizer state of one of its checkpoints."""
    run = _operable(request, run_id)
    overrides = checked(new.overrides)
    with conflicts():
        fork = create_fork(run, new.step, request.user, overrides, new.name)
    return Status(201, detail(request, fork.pk))


def _operable(request: HttpRequest, run_id: uuid.UUID) -> Run:
    run = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, run.project)
    return run


def _actions(run: Run) -> dict[str, Any]:
    return {
        "actions": [
            {"kind": one.kind, "user": one.user.username, "detail": one.detail, "at": one.at}
            for one in actions_of(run)
        ]
    }
