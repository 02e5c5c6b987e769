"""Runs that another program logs: created, or resumed by their key, by one process at a time.

Invariants: `Tracking.key` identifies a run in its project. At most one process, a session, writes;
another one takes its place only when the run has ended or its process has been silent for
`TAKEOVER_SECONDS`, and then every batch of the former is refused. Line n of a session is to it the
event of seq `base` + n, so a line that is sent again is stored once, regardless of who wrote in
between. What the server itself adds to the log (`Tracking.added`) changes no seq that a session
knows: `head_of` is the log's head as its process numbers the events.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.errors import Refused
from webapp.experiments import services
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.models import Experiment, Run, RunAction, Tracking, TrackingSession
from webapp.experiments.scheduling import leases
from webapp.experiments.scheduling.queue import admit
from webapp.experiments.scheduling.states import ENDED
from webapp.projects.models import Project

LAST_SECOND = 4e9
"""Largest accepted time of an event, in Unix seconds (the year 2096)."""
TAKEOVER_SECONDS = 60.0
"""Silence after which another process may continue a run; a client reports every 15 s."""


class Resume(StrEnum):
    """What to do if the project has a run of this key."""

    NEVER = "never"
    ALLOW = "allow"
    MUST = "must"


class KeyRefused(Refused):
    """Raised if the key has a run and may not have one, or the reverse."""

    def __init__(self, key: str, reason: str):
        self.problems = [{"path": "id", "value": key, "reason": reason}]
        super().__init__(reason)


class SessionBusy(Refused):
    """Raised if another process writes to the run."""

    def __init__(self, key: str, reason: str):
        self.problems = [{"path": "session", "value": key, "reason": reason}]
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that logs: `lines` is the number of lines that it has logged so far; what happened
    until `alerts_after`, in Unix seconds, is imported, and raises no alert."""

    session: uuid.UUID
    host: str
    lines: int
    alerts_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Attached:
    """A run and the position of a process in it: its line n is the event of seq `base` + n, and its
    first `lines` lines are stored."""

    run: Run
    created: bool
    base: int
    lines: int


def config_of(run: Run) -> dict[str, Any]:
    """Returns a run's settings: a `RunConfig`, or of a tracked run whatever its program gave."""
    return run.tracking.config if run.tracked else run.config


@transaction.atomic
def attach(
    project: Project, user: User, key: str, resume: Resume, process: Process, *,
    name: str = "", group: str = "",
) -> Attached:  # fmt: skip
    """Makes `process` the one that writes to the run of `key`, which is created if it may be.

    A process that attaches again continues where it was; a run that has ended is reopened if the
    process has lines that are not stored.

    Raises:
        KeyRefused: `resume` excludes it. SessionBusy: another process writes to the run.
        NotNow: too many runs are queued or active.
    """
    # Concurrent creations of one key wait for each other here.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    tracking = Tracking.objects.filter(project=project, key=key).first()
    if tracking is None:
        if resume is Resume.MUST:
            reason = f"{project} has no run of this id; give resume='allow' to create it"
            raise KeyRefused(key, reason)
        run = _create(project, user, key, process, name or key, group)
        return Attached(run, True, 0, 0)
    if tracking.session != process.session and resume is Resume.NEVER:
        seen = TrackingSession.objects.filter(run=tracking.run_id, session=process.session)
        if not seen.exists():
            reason = (
                f"{project} has a run of this id; give resume='allow' to continue it, or another id"
            )
            raise KeyRefused(key, reason)
    return _attach_again(tracking, user, process)


def _create(project: Project, user: User, key: str, process: Process, name: str, group: str) -> Run:
    admit(project, user)
    experiment = Experiment.objects.create(
        project=project, name=name, created_by=user, config={"tracked": key}
    )
    run = Run.objects.create(
        experiment=experiment, number=1, config={}, seed=0, outside=True, tracked=True,
        created_by=user, queued_at=timezone.now(),
    )  # fmt: skip
    Tracking.objects.create(
        run=run, project=project, key=key, group=group, session=process.session,
        host=process.host, alerts_after=process.alerts_after,
    )  # fmt: skip
    note_action(run, user, RunAction.Kind.STARTED, f"from another program, as {key}")
    return services.mark_starting(run.pk, leases.take_external_lease(run.pk))


def _attach_again(tracking: Tracking, user: User, process: Process) -> Attached:
    run = Run.objects.select_for_update(no_key=True).get(pk=tracking.run_id)
    if tracking.session != process.session:
        _refuse_busy(run, tracking)
        _take_over(run, tracking, process)
        is_new = True
    else:
        is_new = False
    if tracking.alerts_after != process.alerts_after:
        tracking.alerts_after = process.alerts_after
        tracking.save(update_fields=["alerts_after"])
    lines = _lines(run, tracking)
    if run.run_state in ENDED and process.lines > lines:
        run = services.reopen_tracked(run.pk, user)
    elif is_new and run.run_state not in ENDED:
        run = services.mark_starting(run.pk, leases.replace_external_lease(run.pk))
    return Attached(run, False, tracking.base, lines)


def _refuse_busy(run: Run, tracking: Tracking) -> None:
    if run.run_state in ENDED or run.lease_expires is None:
        return
    contact = run.lease_expires - timedelta(seconds=leases.EXTERNAL_LEASE_SECONDS)
    silent = (timezone.now() - contact).total_seconds()
    if silent < TAKEOVER_SECONDS:
        where = f" on {tracking.host}" if tracking.host else ""
        reason = (
            f"another process{where} logs to {tracking.key}, and reported {max(silent, 0):.0f} s "
            f"ago: finish it, wait until it has been silent for {TAKEOVER_SECONDS:.0f} s, or give "
            "another id"
        )
        raise SessionBusy(tracking.key, reason)


def _take_over(run: Run, tracking: Tracking, process: Process) -> None:
    """Records where the former process was, and continues this one where it was, if it was here."""
    TrackingSession.objects.update_or_create(
        run=run, session=tracking.session, defaults={"lines": _lines(run, tracking)}
    )
    before = TrackingSession.objects.filter(run=run, session=process.session).first()
    tracking.session, tracking.host = process.session, process.host
    tracking.base, tracking.added = run.head_seq - (before.lines if before else 0), 0
    tracking.save(update_fields=["session", "host", "base", "added"])


def alerts_after(run: Run) -> float:
    """Returns the Unix seconds until which what happened in a run raises no alert; 0 of a run that
    is not imported."""
    return run.tracking.alerts_after if run.tracked else 0.0


def head_of(run: Run) -> int:
    """Returns the log's head as the process that writes it numbers the events."""
    return run.head_seq - (run.tracking.added if run.tracked else 0)


def count_added(run: Run, events: int) -> None:
    """Counts events that the server adds to the log of a tracked run. The caller holds its row."""
    run.tracking.added += events
    run.tracking.save(update_fields=["added"])


def _lines(run: Run, tracking: Tracking) -> int:
    return run.head_seq - tracking.added - tracking.base
