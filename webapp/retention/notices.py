"""Notices in the inbox of the runs that a workspace's policy is going to delete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from webapp.alerts.notices import members_of
from webapp.comments.models import Notice, Reason
from webapp.experiments.models import Run
from webapp.projects.models import Project, Workspace

_SHOWN = 5


def announce_deletions(workspace: Workspace, runs: Collection[Run], moment: datetime) -> None:
    """One notice per project for everybody who sees it: which runs are deleted, when, and how to
    keep one."""
    by_project: dict[Project, list[Run]] = defaultdict(list)
    for run in runs:
        by_project[run.project].append(run)
    for project, some in by_project.items():
        _announce(workspace, project, some, moment)


def _announce(workspace: Workspace, project: Project, runs: list[Run], moment: datetime) -> None:
    number = len(runs)
    what = f"{number} runs of {project} are" if number > 1 else f"{runs[0]} of {project} is"
    names = ", ".join(str(run) for run in runs[:_SHOWN])
    more = f" and {number - _SHOWN} more" if number > _SHOWN else ""
    now = timezone.now()
    content = {
        "reason": Reason.ALERT,
        "key": f"retention:{project.pk}:{now.isoformat()}",
        "project": project,
        "title": f"{what} deleted on {moment:%-d %B %Y}"[:300],
        "text": f"{names}{more}. To keep a run, star it or tag it keep.",
        "path": reverse("retention", args=[workspace.slug]),
        "at": now,
    }
    Notice.objects.bulk_create(Notice(user=one, **content) for one in members_of(project))
