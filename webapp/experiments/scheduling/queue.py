"""Queue of runs: which run is next, and how many runs may be in it.

Invariants: a run counts with the active runs of its person or of its workspace, whichever are
more; a free slot goes to the run with the fewest, of several to the one whose person and workspace
were both served longest ago. So neither many runs, nor many workspaces, nor many members bring more
turns; priority only orders the runs of one workspace. Searches and evaluations are runs and are
scheduled the same way. No project and no user has more runs queued or active than `settings` allow.
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
from webapp.projects.turns import last_turns, note_turn

_PROJECT = "experiment__project"
_WORKSPACE = "experiment__project__workspace"
_TURNS = "turns of workspaces"
_QUEUE = "runs"


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that was taken, and the fencing token of its lease."""

    run_id: uuid.UUID
    fencing: int


def admit(project: Project, user: User, runs: int = 1) -> None:
    """Admits `runs` more runs of `user` in `project`. Call it in the transaction that creates them:
    concurrent calls with the same user or project wait until it ends.

    Raises:
        NotNow: one of the two would exceed its limit of runs queued or active, or the workspace's
            runs have reached their limit of events.
    """
    # All callers lock in this order.
    _lock(f"runs of user {user.pk}")
    _lock(f"runs of project {project.pk}")
    refuse_too_many(project, user, runs)


def refuse_too_many(project: Project, user: User, runs: int = 1) -> None:
    """Raises `NotNow` as `admit` would at this moment, without a lock."""
    active = Run.objects.exclude(state__in=ENDED)
    of_user, of_project = active.filter(created_by=user.pk), active.filter(**{_PROJECT: project.pk})
    for path, owner, active_runs, limit, variable in (
        ("user", f"{user}", of_user, settings.USER_RUNS, "GROVE_USER_RUNS"),
        ("project", f"{project}", of_project, settings.PROJECT_RUNS, "GROVE_PROJECT_RUNS"),
    ):
        if (count := active_runs.count()) + runs > limit:
            reason = (
                f"{count} runs of {owner} are queued or active, and at most {limit} may be: wait "
                f"until some end, stop some, or ask the site's operator to raise {variable}"
            )
            raise NotNow([{"path": path, "value": count + runs, "reason": reason}])
    try:
        refuse_events("project", project.name, events_of(project.workspace_id))
    except AllowanceSpent as refusal:
        raise NotNow(refusal.problems) from None


def events_of(workspace_id: int) -> int:
    """Returns the number of events of the runs of a workspace."""
    runs = Run.objects.filter(**{_WORKSPACE: workspace_id})
    return runs.aggregate(events=Sum("head_seq"))["events"] or 0


def take(run_id: uuid.UUID, owner: str, seconds: float) -> Taken | None:
    """Takes a lease on the run that is due on a message for `run_id`: that run if it was
    interrupted, since it was scheduled already; else the next one. None if no run is due."""
    interrupted = Run.objects.filter(unheld(), pk=run_id, state__in=HELD, outside=False)
    if interrupted.exists() and (fencing := take_lease(run_id, owner, seconds)):
        return Taken(run_id, fencing)
    return take_next(owner, seconds)


@transaction.atomic
def take_next(owner: str, seconds: float) -> Taken | None:
    """Takes a lease on the next run; workers choose one after another."""
    _lock(_TURNS)
    run = next_run()
    if run is None:
        return None
    fencing = take_lease(run.pk, owner, seconds)
    if fencing is None:  # it was stopped concurrently; the sweep sends a message for others
        return None
    Turn.objects.update_or_create(
        workspace_id=run.experiment.project.workspace_id, defaults={"at": Now()}
    )
    note_turn(_QUEUE, run.created_by_id)
    return Taken(run.pk, fencing)


def next_run() -> Run | None:
    """Returns the next queued run. None if no run is queued whose project and user are both below
    their limits of active runs."""
    active = _active_runs().values_list(_WORKSPACE, _PROJECT, "created_by")
    of_workspaces: Counter[int] = Counter()
    of_projects: Counter[int] = Counter()
    of_users: Counter[int] = Counter()
    for workspace, project, user, runs in active.annotate(runs=Count("pk")).order_by():
        of_workspaces[workspace] += runs
        of_projects[project] += runs
        of_users[user] += runs
    waiting = (
        Run.objects.filter(unheld(), state=RunState.QUEUED, outside=False)
        .exclude(**{f"{_PROJECT}__in": _full(of_projects, settings.PROJECT_RUNNING)})
        .exclude(created_by__in=_full(of_users, settings.USER_RUNNING))
    )
    first_of_each = (
        waiting.order_by(_WORKSPACE, "created_by", "-priority", "queued_at", "created")
        .distinct(_WORKSPACE, "created_by")
        .select_related(_PROJECT)
        .defer("config", "experiment__config", "notes")
    )
    workspace_turns = dict(Turn.objects.values_list("workspace", "at"))
    people_turns = last_turns(_QUEUE)

    def workspace_of(run: Run) -> int:
        return run.experiment.project.workspace_id

    def counted(run: Run) -> int:
        return max(of_workspaces[workspace_of(run)], of_users[run.created_by_id])

    def turn(run: Run) -> tuple[float, ...]:
        last = workspace_turns.get(workspace_of(run)), people_turns.get(run.created_by_id)
        times = [at.timestamp() if at else 0.0 for at in last]
        # The others distinguish the workspaces of one person, and the people of one workspace.
        both = of_workspaces[workspace_of(run)] + of_users[run.created_by_id]
        return max(times), both, min(times), (run.queued_at or run.created).timestamp()

    candidates = list(first_of_each)
    best = min(candidates, key=lambda run: (counted(run), *turn(run)), default=None)
    if best is None:
        return None
    equals = [
        run
        for run in candidates
        if workspace_of(run) == workspace_of(best) and counted(run) == counted(best)
    ]
    return min(equals, key=lambda run: (-run.priority, *turn(run)))


def _active_runs() -> QuerySet[Run]:
    """Returns the runs that occupy a worker's slot, including those whose worker was just lost."""
    just_taken = Q(state=RunState.QUEUED) & ~unheld()
    return Run.objects.filter(Q(state__in=HELD) | just_taken, outside=False)


def _full(running: Counter[int], limit: int) -> list[int]:
    return [one for one, runs in running.items() if runs >= limit]


def _lock(name: str) -> None:
    """Waits for the transaction that holds the name, then holds it until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
