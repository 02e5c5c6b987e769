"""REST of runs that other programs log."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from webapp.experiments.api.runs import RunDetail, detail
from webapp.experiments.scheduling.leases import EXTERNAL_LEASE_SECONDS
from webapp.experiments.tracked_runs import LAST_SECOND, Process, Resume, attach
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import Integer, Real, integer

router = Router()
KEY = r"^[A-Za-z0-9_.:\-]{1,64}$"
LINE = r"^[^\x00-\x1f\x7f]*$"


class TrackedRun(Schema):
    """Identity of a run that a program logs, and of the process that is about to write to it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "id": "grpo-7b-seed3",
                    "name": "GRPO, seed 3",
                    "session": "6f6d2f3e-8d11-4b3e-9a63-1f0c4d1f5a52",
                    "resume": "allow",
                }
            ]
        },
    )

    project: Integer
    id: str = Field(pattern=KEY)
    """The program's id of the run, unique in the project."""
    session: uuid.UUID
    """Identity of the process; each batch of events names it."""
    name: str = Field("", max_length=200, pattern=LINE)
    group: str = Field("", max_length=128, pattern=LINE)
    resume: Resume = Resume.NEVER
    host: str = Field("", max_length=128, pattern=LINE)
    lines: integer(ge=0, lt=2**62) = 0
    """Number of lines that the process has logged; with more than are stored, an ended run is
    reopened."""
    alerts_after: Real = Field(0.0, ge=0, le=LAST_SECOND, allow_inf_nan=False)
    """Unix seconds. What happened until then raises no alert: an import gives the moment at which
    it began, or 4e9 if the run is over."""


class AttachedRun(Schema):
    run: RunDetail
    created: bool
    base: int
    """The process's line n is the event of seq `base` + n."""
    lines: int
    """Number of its lines that are stored."""
    silence_seconds: float
    """Longest silence of the process before the run has failed; an empty batch ends it."""


@router.post("/tracked", response=AttachedRun)
def track_run(request: HttpRequest, tracked: TrackedRun) -> dict[str, Any]:
    """Creates or resumes the run of a program of your own, which then sends its events with
    `session` (POST /runs/{run_id}/events). At most one process writes: while another one
    reports, the request is refused (409)."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=tracked.project)
    require(request.user, Action.OPERATE, project)
    attached = attach(
        project,
        request.user,
        tracked.id,
        tracked.resume,
        Process(tracked.session, tracked.host, tracked.lines, tracked.alerts_after),
        name=tracked.name,
        group=tracked.group,
    )
    return {
        "run": detail(request, attached.run.pk),
        "created": attached.created,
        "base": attached.base,
        "lines": attached.lines,
        "silence_seconds": EXTERNAL_LEASE_SECONDS,
    }
