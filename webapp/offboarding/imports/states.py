"""Transitions of imports of uploaded zips: take, check, confirm, complete, fail, cancel, retry.

Invariants: those of every kind of imports (`webapp.queued_imports`). Nothing is created before its
user has confirmed what the check has found. What an import creates and its end are one transaction,
so there is neither without the other. Of two people the one whose last turn is longest ago goes
first.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.dispatch import receiver

from webapp.accounts.models import User
from webapp.artifacts.models import Upload
from webapp.artifacts.services import discard_with_artifact
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports.requests import HELD, hold
from webapp.offboarding.models import ImportRequest, WorkspaceImport, WorkspaceImportState
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed
from webapp.queued_imports import ENDED_WITHOUT, end, locked, requeue, take_first

KEPT = timedelta(days=1)
"""How long the file of a failed or cancelled import is kept for another attempt, and that of a
checked one for its user's decision."""


def take() -> ImportRequest | None:
    """Takes an import that is queued, or whose worker was lost, under a lease of the caller."""
    begun = ImportRequest.objects.filter(created_by=OuterRef("created_by"), started__isnull=False)
    last_turn = Subquery(begun.order_by("-started").values("started")[:1])
    rows = ImportRequest.objects.order_by(last_turn.asc(nulls_first=True), "created", "pk")
    return take_first(rows, settings.IMPORT_SECONDS)


@transaction.atomic
def record_check(one: ImportRequest, summary: dict[str, Any]) -> bool:
    """Records what the check has found. Returns whether to go on with the import: one that is not
    confirmed ends, for now, as checked. Raises `ImportLost`."""
    row = locked(one)
    row.summary = summary
    if row.is_confirmed:
        row.save(update_fields=["summary"])
        return True
    row.progress = 1.0
    _hold(row, KEPT)
    end(row, WorkspaceImportState.CHECKED)
    return False


@transaction.atomic
def confirm(one: ImportRequest) -> None:
    """Queues the import of a file that was checked.

    Raises:
        ImportRefused: it is not checked, or its file was discarded.
    """
    row = _locked_request(one)
    if not row.can_confirm:
        is_lost = row.state == WorkspaceImportState.CHECKED
        reason = "was discarded; upload it again" if is_lost else "does not wait to be confirmed"
        raise ImportRefused(row.file, reason, 409)
    row.is_confirmed = True
    _hold(row, HELD)
    requeue(row)


@transaction.atomic
def complete(one: ImportRequest, made: WorkspaceImport) -> None:
    """Marks the import as done, in the transaction that created what is in it. Raises
    `ImportLost`."""
    row = locked(one)
    row.result, row.progress = made, 1.0
    _release(row)
    end(row, WorkspaceImportState.DONE)


@transaction.atomic
def fail(one: ImportRequest, cause: str, *, is_final: bool = False) -> None:
    """Marks the import as failed; a final failure is one that another attempt would repeat, so its
    file is discarded. Raises `ImportLost`."""
    row = locked(one)
    if is_final:
        _release(row)
    _end_without(row, WorkspaceImportState.FAILED, cause)


def cancel(one: ImportRequest, by: User) -> None:
    """Cancels an import that is queued or running, or waits to be confirmed; one that has ended is
    unchanged. Its worker kills the process when it renews its lease, and nothing is created."""
    _cancel(one, f"cancelled by {by.username}")


@transaction.atomic
def _cancel(one: ImportRequest, cause: str) -> None:
    row = _locked_request(one)
    if row.can_cancel:
        _end_without(row, WorkspaceImportState.CANCELLED, cause)


def _locked_request(one: ImportRequest) -> ImportRequest:
    return ImportRequest.objects.select_for_update(no_key=True, of=("self",)).get(pk=one.pk)


@transaction.atomic
def retry(one: ImportRequest) -> None:
    """Queues a failed or cancelled import again.

    Raises:
        ImportRefused: it has not ended, is done, or its file was discarded.
    """
    row = _locked_request(one)
    if not row.can_retry:
        is_over = row.state == WorkspaceImportState.DONE
        reason = "is done" if is_over else "is not over"
        if row.state in ENDED_WITHOUT:
            reason = "was discarded; upload it again"
        raise ImportRefused(row.file, reason, 409)
    _hold(row, HELD)
    requeue(row)


@receiver(access_changed)
def cancel_unpermitted(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Cancels the imports into the workspace of users who own it no longer."""
    pending = (
        WorkspaceImportState.QUEUED,
        WorkspaceImportState.RUNNING,
        WorkspaceImportState.CHECKED,
    )
    rows = ImportRequest.objects.filter(into=workspace, created_by__in=user_ids, state__in=pending)
    for one in rows.select_related("created_by"):
        if not may(one.created_by, Action.IMPORT, workspace):
            _cancel(one, f"{one.created_by.username} may no longer import into {workspace}")


def _end_without(row: ImportRequest, state: WorkspaceImportState, cause: str) -> None:
    _hold(row, KEPT)
    end(row, state, cause)


def _hold(row: ImportRequest, duration: timedelta) -> None:
    if row.upload is not None:  # its user has not deleted it meanwhile
        hold(row.upload, duration)


def _release(row: ImportRequest) -> None:
    """Discards the file once the transaction is committed; the collector does it where this
    process ends before that."""
    upload: Upload | None = row.upload
    if upload is not None:
        hold(upload, timedelta())
        row.upload = None
        row.save(update_fields=["upload"])
        transaction.on_commit(partial(discard_with_artifact, upload))
