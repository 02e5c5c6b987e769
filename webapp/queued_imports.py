"""Imports that a worker does: the state that every kind of them has, and its transitions.

Invariants: the row is the truth, there is no message: a worker takes a queued import, or a lost
worker's, under a lease that it renews; a worker that lost its lease is refused (`ImportLost`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from django.db import models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from engine.config.deadlines import JOB_LEASE
from engine.config.errors import printable
from webapp.server_paths import relative

MOST_ATTEMPTS = 3
_LOST = (
    "its workers ended repeatedly before it was done; have the server's operator read their log, "
    f"and {JOB_LEASE.remedy}"
)


class ImportLost(Exception):
    """Raised when another worker has the import, or it was cancelled or deleted."""


class ImportState(models.TextChoices):
    """States that every kind of imports has; a kind may have more."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


OPEN = (ImportState.QUEUED, ImportState.RUNNING)
ENDED_WITHOUT = (ImportState.FAILED, ImportState.CANCELLED)
"""Ended without a result."""


class QueuedImport(models.Model):
    """Base of the tables of imports."""

    created = models.DateTimeField(auto_now_add=True)
    state = models.CharField(max_length=10, choices=ImportState.choices, default=ImportState.QUEUED)
    progress = models.FloatField(default=0.0)
    """Part that is done, from 0 to 1."""
    phase = models.CharField(max_length=100, blank=True)
    """What the worker does at the moment."""
    error = models.TextField(blank=True)
    """First cause of its failure."""
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    """Time at which a running import is abandoned."""
    attempts = models.PositiveIntegerField(default=0)
    """Number of workers that took it since it was requested."""
    fencing = models.PositiveIntegerField(default=0)
    """Grows with every worker that takes it; writes with an older token are refused."""
    lease_expires = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in OPEN

    @property
    def colour(self) -> str:
        """Name of the palette entry of its state."""
        return {"queued": "grey", "running": "blue", "done": "green", "failed": "red"}.get(
            self.state, "grey"
        )


One = TypeVar("One", bound=QueuedImport)


@transaction.atomic
def take_first(rows: QuerySet[One], seconds: float) -> One | None:
    """Takes the first of the ordered `rows` that is queued, or whose worker was lost, under a lease
    of the caller; it is abandoned after so many `seconds`."""
    now = timezone.now()
    due = Q(state=ImportState.QUEUED) | Q(state=ImportState.RUNNING, lease_expires__lt=now)
    one = rows.filter(due).select_for_update(skip_locked=True, of=("self",)).first()
    if one is None:
        return None
    one.fencing += 1
    one.attempts += 1
    if one.attempts > MOST_ATTEMPTS:
        end(one, ImportState.FAILED, _LOST)
        return None
    one.state, one.started, one.progress, one.phase = ImportState.RUNNING, now, 0.0, "Starting"
    one.deadline = now + timedelta(seconds=seconds)
    one.lease_expires = now + timedelta(seconds=JOB_LEASE.seconds)
    one.save()
    return one


def renew(one: QueuedImport, progress: float, phase: str) -> None:
    """Renews the lease and records the progress, which never falls. Raises `ImportLost`."""
    lease = timezone.now() + timedelta(seconds=JOB_LEASE.seconds)
    share = Greatest(F("progress"), min(1.0, max(0.0, progress)))
    if not _leased(one).update(lease_expires=lease, progress=share, phase=printable(phase)[:100]):
        raise ImportLost


def give_back(one: QueuedImport) -> None:
    """Requeues the import of a worker that shuts down; another one restarts it."""
    _leased(one).update(
        state=ImportState.QUEUED, lease_expires=None, deadline=None, progress=0.0, phase="",
        attempts=F("attempts") - 1,
    )  # fmt: skip


def requeue(row: QueuedImport) -> None:
    """Queues a locked row again, as if it had just been requested."""
    row.state, row.error, row.phase, row.progress = ImportState.QUEUED, "", "", 0.0
    row.attempts, row.finished, row.deadline = 0, None, None
    row.save()


def end(row: QueuedImport, state: str, error: str = "") -> None:
    """Ends a locked row. The error is kept without the places of this server's files."""
    row.state, row.finished = state, timezone.now()
    row.error = printable(relative(error))[:4000]
    row.lease_expires = row.deadline = None
    row.phase = ""
    row.save()


def locked(one: One) -> One:
    """Returns the locked row of an import that the caller has taken. Raises `ImportLost`."""
    row = _leased(one).select_for_update(no_key=True, of=("self",)).first()
    if row is None:
        raise ImportLost
    return row


def locked_open(one: One) -> One | None:
    """Returns the locked row of an import that is queued or running; None if it has ended."""
    rows = type(one)._default_manager.filter(pk=one.pk, state__in=OPEN)
    return rows.select_for_update(no_key=True, of=("self",)).first()


def _leased(one: QueuedImport) -> Any:
    rows = type(one)._default_manager
    return rows.filter(pk=one.pk, fencing=one.fencing, state=ImportState.RUNNING)
