"""The queue of runs: whose turn is next, and how many runs may be in it.

Invariants: a free place goes to the workspace with the fewest runs at work, of several to the one
served longest ago, so nobody waits for more than the next free place because others queued much;
priority orders the runs of one workspace and nothing else. Searches and evaluations are runs and
take the same turns. No project and no user has more runs queued or at work than `settings` allow.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Now

from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments.models import Run, Turn
from webapp.experiments.scheduling.leases import take_lease, unheld
from webapp.experiments.scheduling.states import ENDED, HELD, NotNow
from webapp.projects.allowances import AllowanceSpent, refuse_events
from webapp.projects.models import Project

_PROJECT = "experiment__project"
_WORKSPACE = "experiment__project__workspace"
_TURNS = "turns of workspaces"


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that is held from now on, and the fencing token of its lease."""

    run_id: uuid.UUID
    fencing: int


def admit(project: Project, user: User, runs: int = 1) -> None:
    """Let `user` have so many more runs in `project`; in the transaction that makes them, whose end
    is what others with the same user or project wait for.

    Raises:
        NotNow: one of the two would have more than may be queued or at work at once, or the
            workspace's runs hold as many events as they may.
    """
    # Everybody locks in this order.
    _lock(f"runs of user {user.pk}")
    _lock(f"runs of project {project.pk}")
    refuse_too_many(project, user, runs)


def refuse_too_many(project: Project, user: User, runs: int = 1) -> None:
    """Raises `NotNow` as `admit` would at this moment; nothing is locked."""
    active = Run.objects.exclude(state__in=ENDED)
    of_user, of_project = active.filter(created_by=user.pk), active.filter(**{_PROJECT: project.pk})
    for path, whose, found, most, variable in (
        ("user", f"{user}", of_user, settings.USER_RUNS, "GROVE_USER_RUNS"),
        ("project", f"{project}", of_project, settings.PROJECT_RUNS, "GROVE_PROJECT_RUNS"),
    ):
        if (there := found.count()) + runs > most:
            reason = (
                f"{there} runs of {whose} are queued or at work, and at most {most} may be: wait "
                f"until some end, stop some, or ask the operator of the site ({variable})"
            )
            raise NotNow([{"path": path, "value": there + runs, "reason": reason}])
    try:
        refuse_events("project", project.name, events_of(project.workspace_id))
    except AllowanceSpent as refusal:
        raise NotNow(refusal.problems) from None


def events_of(workspace_id: int) -> int:
    """How many events the runs of a workspace hold."""
    runs = Run.objects.filter(**{_WORKSPACE: workspace_id})
    return runs.aggregate(events=Sum("head_seq"))["events"] or 0


def take(run_id: uuid.UUID, owner: str, seconds: float) -> Taken | None:
    """A lease on what is due when a message says to look at this run: the run itself if it was
    interrupted, since it has had its turn; else whichever is next. None if nothing is due."""
    interrupted = Run.objects.filter(unheld(), pk=run_id, state__in=HELD, outside=False)
    if interrupted.exists() and (fencing := take_lease(run_id, owner, seconds)):
        return Taken(run_id, fencing)
    return take_next(owner, seconds)


@transaction.atomic
def take_next(owner: str, seconds: float) -> Taken | None:
    """A lease on the run whose turn it is; one worker after another chooses."""
    _lock(_TURNS)
    run = next_run()
    if run is None:
        return None
    fencing = take_lease(run.pk, owner, seconds)
    if fencing is None:  # it was stopped meanwhile; the sweep says that there is more
        return None
    Turn.objects.update_or_create(
        workspace_id=run.experiment.project.workspace_id, defaults={"at": Now()}
    )
    return Taken(run.pk, fencing)


def next_run() -> Run | None:
    """The queued run whose turn it is. None if there is none, or only such whose project or user
    has as many at work as may be."""
    at_work = _at_work().values_list(_WORKSPACE, _PROJECT, "created_by")
    of_workspaces: Counter[int] = Counter()
    of_projects: Counter[int] = Counter()
    of_users: Counter[int] = Counter()
    for workspace, project, user, runs in at_work.annotate(runs=Count("pk")).order_by():
        of_workspaces[workspace] += runs
        of_projects[project] += runs
        of_users[user] += runs
    waiting = (
        Run.objects.filter(unheld(), state=RunState.QUEUED, outside=False)
        .exclude(**{f"{_PROJECT}__in": _full(of_projects, settings.PROJECT_RUNNING)})
        .exclude(created_by__in=_full(of_users, settings.USER_RUNNING))
    )
    first_of_each = (
        waiting.order_by(_WORKSPACE, "-priority", "queued_at", "created")
        .distinct(_WORKSPACE)
        .select_related(_PROJECT)
        .defer("config", "experiment__config", "notes")
    )
    served = dict(Turn.objects.values_list("workspace", "at"))

    def turn(run: Run) -> tuple:
        workspace = run.experiment.project.workspace_id
        last = served.get(workspace)
        return of_workspaces[workspace], last is not None, last, run.queued_at or run.created

    # `last` is compared only where both are moments.
    return min(first_of_each, key=turn, default=None)


def _at_work() -> QuerySet[Run]:
    """Runs that have a place on a worker, those that lost it a moment ago among them."""
    just_taken = Q(state=RunState.QUEUED) & ~unheld()
    return Run.objects.filter(Q(state__in=HELD) | just_taken, outside=False)


def _full(running: Counter[int], most: int) -> list[int]:
    return [one for one, runs in running.items() if runs >= most]


def _lock(name: str) -> None:
    """Wait for the transaction that holds the name, then hold it until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
