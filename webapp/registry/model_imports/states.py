"""Transitions of imports of models: take, complete, fail, cancel, retry.

Invariants: those of every kind of imports (`webapp.queued_imports`). The version and the end of its
import are one transaction, so there is neither without the other. Workspaces take turns, as do
people: the one whose last turn is longest ago goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pghistory
from django.conf import settings
from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.models import Artifact
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed
from webapp.projects.turns import last_turn
from webapp.queued_imports import (
    ENDED_WITHOUT,
    OPEN,
    ImportLost,
    ImportState,
    end,
    give_back,
    locked,
    locked_open,
    renew,
    requeue,
    take_first,
)
from webapp.registry.errors import RegistryRefused
from webapp.registry.models import ModelImport, ModelVersion

__all__ = ["ImportLost", "cancel", "complete", "fail", "give_back", "renew", "retry", "take"]

KEPT = timedelta(days=1)
"""How long the file of a failed or cancelled import is kept for another attempt."""


def take() -> ModelImport | None:
    """Takes an import that is queued, or whose worker was lost, under a lease of the caller."""
    turn = last_turn(ModelImport, "project__workspace")
    turns = ModelImport.objects.order_by(turn.asc(nulls_first=True), "created", "pk")
    return take_first(turns, settings.IMPORT_SECONDS)


@transaction.atomic
def fail(one: ModelImport, cause: str, *, is_final: bool = False) -> None:
    """Marks the import as failed; a final failure is one that another attempt would repeat, so its
    file is discarded. Raises `ImportLost`."""
    row = locked(one)
    artifact = row.artifact
    if is_final:
        row.artifact = None
    end(row, ImportState.FAILED, cause)
    if is_final:
        _remove_on_commit(artifact)


def cancel(one: ModelImport, by: User) -> None:
    """Cancels an import that is queued or running; one that has ended is unchanged. Its worker
    stops the engine when it renews its lease."""
    _cancel(one, f"cancelled by {by.username}")


@transaction.atomic
def _cancel(one: ModelImport, cause: str) -> None:
    if row := locked_open(one):
        end(row, ImportState.CANCELLED, cause)


@transaction.atomic
def retry(one: ModelImport) -> None:
    """Queues a failed or cancelled import again.

    Raises:
        RegistryRefused: it has not ended, is done, or its file was discarded.
    """
    row = ModelImport.objects.select_for_update(no_key=True, of=("self",)).get(pk=one.pk)
    if not row.can_retry:
        reason = "it is not over" if row.is_open else "it is done"
        if row.state in ENDED_WITHOUT:
            reason = "its file was discarded; upload it again"
        raise RegistryRefused(f"The import of {row} cannot be retried: {reason}.")
    requeue(row)


@transaction.atomic
def complete(one: ModelImport, version_of: Callable[[], ModelVersion]) -> ModelVersion:
    """Creates the version by `version_of()` and marks the import as done, both or none. The audit
    record of the version names who requested the import.

    Raises:
        ImportLost: another worker has it, or it was cancelled. Any error of `version_of`.
    """
    row = locked(one)
    artifact, row.artifact = row.artifact, None
    row.save(update_fields=["artifact"])
    with pghistory.context(user=row.created_by_id):
        row.version = version_of()
    row.progress = 1.0
    end(row, ImportState.DONE)
    _remove_on_commit(artifact)
    return row.version


def discard_old_files() -> int:
    """Discards the files of imports that ended without a version more than `KEPT` ago; returns how
    many."""
    old = ModelImport.objects.filter(
        state__in=ENDED_WITHOUT,
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
        project__workspace=workspace, created_by__in=user_ids, state__in=OPEN
    )
    for one in open_ones.select_related("project", "created_by"):
        if not may(one.created_by, Action.ADD_MODELS, one.project):
            _cancel(one, f"{one.created_by.username} may no longer add models")


def _remove_on_commit(artifact: Artifact | None) -> None:
    if artifact is not None:
        transaction.on_commit(lambda: store.remove(artifact))
