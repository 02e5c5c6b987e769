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
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

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
    active = _Active.now()
    candidates = list(_first_of_each(active))
    order = _Order(active, dict(Turn.objects.values_list("workspace", "at")), last_turns(_QUEUE))
    best = min(candidates, key=lambda run: (order.counted(run), *order.turn(run)), default=None)
    if best is None:
        return None
    equals = [
        run
        for run in candidates
        if _workspace_of(run) == _workspace_of(best) and order.counted(run) == order.counted(best)
    ]
    return min(equals, key=lambda run: (-run.priority, *order.turn(run)))


@dataclass(frozen=True, slots=True)
class _Active:
    """Numbers of active runs, by primary key."""

    of_workspaces: Counter[int]
    of_projects: Counter[int]
    of_users: Counter[int]

    @classmethod
    def now(cls) -> _Active:
        active = cls(Counter(), Counter(), Counter())
        rows = _active_runs().values_list(_WORKSPACE, _PROJECT, "created_by")
        for workspace, project, user, runs in rows.annotate(runs=Count("pk")).order_by():
            active.of_workspaces[workspace] += runs
            active.of_projects[project] += runs
            active.of_users[user] += runs
        return active


def _first_of_each(active: _Active) -> QuerySet[Run]:
    """Returns the first queued run of every person in every workspace, of those below limits."""
    waiting = (
        Run.objects.filter(unheld(), state=RunState.QUEUED, outside=False)
        .exclude(**{f"{_PROJECT}__in": _full(active.of_projects, settings.PROJECT_RUNNING)})
        .exclude(created_by__in=_full(active.of_users, settings.USER_RUNNING))
    )
    return (
        waiting.order_by(_WORKSPACE, "created_by", "-priority", "queued_at", "created")
        .distinct(_WORKSPACE, "created_by")
        .select_related(_PROJECT)
        .defer("config", "experiment__config", "notes")
    )


@dataclass(frozen=True, slots=True)
class _Order:
    """Order of queued runs: by active runs, then by the time since the last turns."""

    active: _Active
    workspace_turns: Mapping[int, datetime]
    people_turns: Mapping[int, datetime]

    def counted(self, run: Run) -> int:
        """Returns the active runs of the run's person or workspace, whichever are more."""
        of_workspace = self.active.of_workspaces[_workspace_of(run)]
        return max(of_workspace, self.active.of_users[run.created_by_id])

    def turn(self, run: Run) -> tuple[float, ...]:
        """Returns the sort key of runs with equal counts: smaller is served longer ago."""
        workspace, user = _workspace_of(run), run.created_by_id
        last = self.workspace_turns.get(workspace), self.people_turns.get(user)
        times = [at.timestamp() if at else 0.0 for at in last]
        # The others distinguish the workspaces of one person, and the people of one workspace.
        both = self.active.of_workspaces[workspace] + self.active.of_users[user]
        return max(times), both, min(times), (run.queued_at or run.created).timestamp()


def _workspace_of(run: Run) -> int:
    return run.experiment.project.workspace_id


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
