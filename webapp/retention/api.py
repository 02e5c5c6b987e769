"""REST of the deletion of runs, and of how long a workspace keeps them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict

from webapp.experiments.api.runs import router as runs
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may, require
from webapp.projects.selectors import visible_workspace
from webapp.rest.json_types import Flag, integer
from webapp.retention import policy, services
from webapp.retention.models import PlannedDeletion
from webapp.retention.plan import plan_of

workspaces = Router()

Slug = Annotated[str, Path(pattern=r"^[-a-zA-Z0-9_]{1,60}$")]


class DeletionPlanOut(Schema):
    """Everything that is deleted with a run; sizes are bytes."""

    name: str
    events: int
    metrics: int
    folder_bytes: int
    """Of its folder: log, checkpoints, weights."""
    comments: int
    shares: int
    """Links that still show it."""
    stars: int
    versions: list[str]
    """Registered model versions, deleted with their files."""
    version_bytes: int
    evaluation: str
    """The evaluation of a model version that it executed; empty if it is none."""
    experiment: bool
    """Whether its experiment, which has no other run, is deleted too."""
    kept: list[str]
    """What came from it and stays."""
    refusals: list[str]
    """What prevents the deletion, each with the remedy."""


class KeptOut(Schema):
    reason: str
    runs: int


class PlannedOut(Schema):
    run: uuid.UUID
    name: str
    deleted_at: datetime
    """Not before."""


class RetentionOut(Schema):
    days: int | None
    """Since the end of a run; null keeps runs for good."""
    unused_versions: bool
    due: int | None
    """Runs that it deletes next; null for those who may not change it, and without a policy."""
    kept: list[KeptOut]
    """Runs as old that are kept, by reason."""
    planned: list[PlannedOut]
    """The next announced deletions, at most 50."""


class NewRetention(Schema):
    """How long the workspace keeps runs after their end."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"days": 90, "unused_versions": False}]}
    )

    days: integer(ge=policy.SHORTEST, le=policy.LONGEST) | None
    """Null keeps them for good."""
    unused_versions: Flag = False
    """Also runs whose registered model versions nothing uses, with these versions."""


@runs.get("/{uuid:run_id}/deletion", response=DeletionPlanOut)
def get_run_deletion(request: HttpRequest, run_id: uuid.UUID):
    """Returns what the deletion of the run would delete, and what prevents it."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.DELETE_RUNS, run.project)
    return plan_of(run)


@runs.delete("/{uuid:run_id}", response={204: None})
def delete_run(request: HttpRequest, run_id: uuid.UUID):
    """Deletes the run with everything of it, for good; 409 while it is active or in use."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.DELETE_RUNS, run.project)
    try:
        services.delete_run(run)
    except Run.DoesNotExist:
        get_object_or_404(Run, pk=run_id)
    return Status(204, None)


@workspaces.get("/{slug}/retention", response=RetentionOut)
def get_retention(request: HttpRequest, slug: Slug):
    """Returns how long the workspace keeps runs, and which ones it deletes next."""
    return _retention(request, visible_workspace(request.user, slug))


@workspaces.patch("/{slug}/retention", response=RetentionOut)
def change_retention(request: HttpRequest, slug: Slug, new: NewRetention):
    """Sets how long the workspace keeps runs after their end."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.SET_RETENTION, workspace)
    policy.change_policy(workspace, new.days, new.unused_versions)
    return _retention(request, workspace)


def _retention(request: HttpRequest, workspace: Workspace) -> dict:
    current = policy.policy_of(workspace)
    forecast = None
    if current and may(request.user, Action.SET_RETENTION, workspace):
        forecast = policy.forecast(workspace, current.days, current.unused_versions)
    planned = PlannedDeletion.objects.visible_to(request.user).filter(
        pk__in=policy.planned_in(workspace)
    )
    rows = planned.select_related("run__experiment").order_by("announced_at", "pk")[:50]
    return {
        "days": current.days if current else None,
        "unused_versions": bool(current and current.unused_versions),
        "due": forecast.due if forecast else None,
        "kept": [{"reason": r, "runs": n} for r, n in forecast.kept.items()] if forecast else [],
        "planned": [
            {
                "run": one.run_id,
                "name": str(one.run),
                "deleted_at": one.announced_at + policy.NOTICE,
            }
            for one in rows
        ],
    }
