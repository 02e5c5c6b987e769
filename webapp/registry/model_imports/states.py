"""Transitions of imports: request, take, renew, give back, complete, fail, cancel, retry.

Invariants: the row is the truth, there is no message: a worker takes a queued import, or a lost
worker's, under a lease that it renews; a worker that lost its lease is refused (`ImportLost`). The
version and the end of its import are one transaction, so there is neither without the other.
Workspaces take turns, as do people: the one whose last turn is longest ago goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pghistory
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.dispatch import receiver
from django.utils import timezone

from engine.config.deadlines import JOB_LEASE
from engine.config.errors import printable
from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.models import Artifact
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed
from webapp.projects.turns import last_turn
from webapp.registry.errors import RegistryRefused
from webapp.registry.models import ImportState, ModelImport, ModelVersion
from webapp.server_paths import relative

MOST_ATTEMPTS = 3
KEPT = timedelta(days=1)
"""How long the file of a failed or cancelled import is kept for another attempt."""
_OPEN = (ImportState.QUEUED, ImportState.RUNNING)
_LOST = (
    "its workers ended repeatedly before it was done; have the server's operator read their log, "
    f"and {JOB_LEASE.remedy}"
)


class ImportLost(Exception):
    """Raised when another worker has the import, or it was cancelled or deleted."""


def take() -> ModelImport | None:
    """Takes an import that is queued, or whose worker was lost, under a lease of the caller."""
    now = timezone.now()
    with transaction.atomic():
        due = Q(state=ImportState.QUEUED) | Q(state=ImportState.RUNNING, lease_expires__lt=now)
        one = (
            ModelImport.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(due)
            .order_by(
                last_turn(ModelImport, "project__workspace").asc(nulls_first=True), "created", "pk"
            )
            .first()
        )
        if one is None:
            return None
        one.fencing += 1
        one.attempts += 1
        if one.attempts > MOST_ATTEMPTS:
            _end(one, ImportState.FAILED, _LOST)
            return None
        one.state, one.started, one.progress, one.phase = ImportState.RUNNING, now, 0.0, "Starting"
        one.deadline = now + timedelta(seconds=settings.IMPORT_SECONDS)
        one.lease_expires = now + timedelta(seconds=JOB_LEASE.seconds)
        one.save()
    return one


def renew(one: ModelImport, progress: float, phase: str) -> None:
    """Renews the lease and records the progress, which never falls. Raises `ImportLost`."""
    lease = timezone.now() + timedelta(seconds=JOB_LEASE.seconds)
    share = Greatest(F("progress"), min(1.0, max(0.0, progress)))
    if not _leased(one).update(lease_expires=lease, progress=share, phase=printable(phase)[:100]):
        raise ImportLost


def give_back(one: ModelImport) -> None:
    """Requeues the import of a worker that shuts down; another one restarts it."""
    _leased(one).update(
        state=ImportState.QUEUED, lease_expires=None, deadline=None, progress=0.0, phase="",
        attempts=F("attempts") - 1,
    )  # fmt: skip


@transaction.atomic
def fail(one: ModelImport, cause: str, *, is_final: bool = False) -> None:
    """Marks the import as failed; a final failure is one that another attempt would repeat, so its
    file is discarded. Raises `ImportLost`."""
    row = _locked(one)
    artifact = row.artifact
    if is_final:
        row.artifact = None
    _end(row, ImportState.FAILED, relative(cause))
    if is_final:
        _remove_on_commit(artifact)


def cancel(one: ModelImport, by: User) -> None:
    """Cancels an import that is queued or running; one that has ended is unchanged. Its worker
    stops the engine when it renews its lease."""
    _cancel(one, f"cancelled by {by.username}")


@transaction.atomic
def _cancel(one: ModelImport, cause: str) -> None:
    open_ones = ModelImport.objects.filter(pk=one.pk, state__in=_OPEN)
    if locked := open_ones.select_for_update(no_key=True, of=("self",)).first():
        _end(locked, ImportState.CANCELLED, cause)


@transaction.atomic
def retry(one: ModelImport) -> None:
    """Queues a failed or cancelled import again.

    Raises:
        RegistryRefused: it has not ended, is done, or its file was discarded.
    """
    row = ModelImport.objects.select_for_update(no_key=True, of=("self",)).get(pk=one.pk)
    if not row.can_retry:
        reason = "it is not over" if row.is_open else "it is done"
        if row.state in (ImportState.FAILED, ImportState.CANCELLED):
            reason = "its file was discarded; upload it again"
        raise RegistryRefused(f"The import of {row} cannot be retried: {reason}.")
    row.state, row.error, row.phase, row.progress = ImportState.QUEUED, "", "", 0.0
    row.attempts, row.finished, row.deadline = 0, None, None
    row.save()


@transaction.atomic
def complete(one: ModelImport, version_of: Callable[[], ModelVersion]) -> ModelVersion:
    """Creates the version by `version_of()` and marks the import as done, both or none. The audit
    record of the version names who requested the import.

    Raises:
        ImportLost: another worker has it, or it was cancelled. Any error of `version_of`.
    """
    row = _locked(one)
    artifact, row.artifact = row.artifact, None
    row.save(update_fields=["artifact"])
    with pghistory.context(user=row.created_by_id):
        row.version = version_of()
    row.progress = 1.0
    _end(row, ImportState.DONE)
    _remove_on_commit(artifact)
    return row.version


def discard_old_files() -> int:
    """Discards the files of imports that ended without a version more than `KEPT` ago; returns how
    many."""
    old = ModelImport.objects.filter(
        state__in=(ImportState.FAILED, ImportState.CANCELLED),
        finished__lt=timezone.now() - KEPT,
        artifact__isnull=False,
    )
    count = 0
    for one in old.select_related("artifact"):
        artifact = one.artifact
        count += old.filter(pk=one.pk).update(artifact=None)
        store.remove(artifact)
    return count


@receiver(access_changed)
def cancel_unpermitted(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Cancels the open imports of users who may no longer add models."""
    open_ones = ModelImport.objects.filter(
        project__workspace=workspace, created_by__in=user_ids, state__in=_OPEN
    )
    for one in open_ones.select_related("project", "created_by"):
        if not may(one.created_by, Action.ADD_MODELS, one.project):
            _cancel(one, f"{one.created_by.username} may no longer add models")


def _end(one: ModelImport, state: str, error: str = "") -> None:
    one.state, one.error, one.finished = state, printable(error)[:4000], timezone.now()
    one.lease_expires = one.deadline = None
    one.phase = ""
    one.save()


def _remove_on_commit(artifact: Artifact | None) -> None:
    if artifact is not None:
        transaction.on_commit(lambda: store.remove(artifact))


def _locked(one: ModelImport) -> ModelImport:
    row = _leased(one).select_for_update(no_key=True, of=("self",)).first()
    if row is None:
        raise ImportLost
    return row


def _leased(one: ModelImport) -> Any:
    return ModelImport.objects.filter(pk=one.pk, fencing=one.fencing, state=ImportState.RUNNING)
