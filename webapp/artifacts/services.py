"""Transitions of uploads: begin, append, finish, discard.

Invariants: the file of an upload, `UPLOADS_DIR/ID`, contains at least its `received` bytes; bytes
after them were never acknowledged and are overwritten. A writer holds the row's lock, so that two
appends never mix; a finished upload has an artifact and no file.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Sum
from django.dispatch import receiver
from django.shortcuts import get_object_or_404
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.errors import OffsetMismatch, UploadRefused
from webapp.artifacts.models import Charge, Upload
from webapp.artifacts.names import name_error
from webapp.artifacts.selectors import room_of
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed

LIFETIME = timedelta(days=1)
"""How long an upload waits for its next bytes, and a finished one for its use."""
ACTIONS = {
    Upload.Kind.DATASET: Action.ADD_DATASETS,
    Upload.Kind.MODEL: Action.ADD_MODELS,
    Upload.Kind.WORKSPACE: Action.IMPORT,
}
"""Kind of upload -> permission that it requires."""


def begin(
    project: Project | None,
    user: User,
    kind: Upload.Kind,
    name: str,
    size: int,
    sha256: str = "",
) -> Upload:
    """Creates an upload of `size` bytes, at offset 0; the zip of a workspace is for no project.

    Raises:
        UploadRefused: the name is no valid file name, or the size is over a limit.
    """
    if reason := name_error(name):
        raise UploadRefused("name", name, reason)
    with transaction.atomic():
        if project is None:
            User.objects.select_for_update(no_key=True).get(pk=user.pk)
            _refuse_zip(user, size)
        else:
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            _refuse_size(project, kind, size)
        return Upload.objects.create(
            project=project,
            created_by=user,
            kind=kind,
            name=name,
            size=size,
            expected_sha256=sha256,
            expires=timezone.now() + LIFETIME,
        )


def append(upload: Upload, offset: int, content: IO[bytes]) -> Upload:
    """Appends the bytes of `content` if `offset` is the upload's; all of them or none.

    Raises:
        OffsetMismatch: the upload is at another offset, or another request is appending to it.
        UploadRefused: there are more bytes than one request may send, or than were announced.
        OSError: the bytes cannot be written; the upload's offset does not change.
    """
    with transaction.atomic():
        upload = _locked(upload)
        path = path_of(upload)
        _correct_received(upload, path)
        if upload.artifact_id or offset != upload.received:
            reason = f"the upload is at byte {upload.received}, not {offset}: continue from there"
            raise OffsetMismatch(upload.received, reason)
        block = content.read(settings.ARTIFACT_CHUNK_BYTES + 1)
        _refuse_block(upload, len(block))
        _write_at(path, offset, block)
        upload.received += len(block)
        upload.expires = timezone.now() + LIFETIME
        upload.save(update_fields=["received", "expires"])
    return upload


def _write_at(path: Path, offset: int, block: bytes) -> None:
    """Writes all of the block or, on a full disk, none of it: its space is freed again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("r+b" if path.exists() else "xb") as file:
            file.seek(offset)
            file.write(block)
            file.truncate()
    except OSError:
        with suppress(OSError):
            os.truncate(path, offset)
        raise


def refreshed(upload: Upload) -> Upload:
    """The upload with `received` as it is on the disk: the client resends what a crash lost."""
    _correct_received(upload, path_of(upload))
    return upload


def finish(upload: Upload) -> Upload:
    """Turns the complete upload into an artifact. Idempotent.

    Raises:
        OffsetMismatch: bytes are missing.
        UploadRefused: the bytes are not those that were announced; the upload is deleted.
    """
    with transaction.atomic():
        upload = _locked(upload)
        if upload.artifact_id:
            return upload
        path = path_of(upload)
        _correct_received(upload, path)
        if upload.received < upload.size:
            reason = f"{upload.received} of {upload.size} bytes were received: send the rest first"
            raise OffsetMismatch(upload.received, reason)
        try:
            upload.artifact = store.put_file(path, upload.expected_sha256)
        except store.WrongDigest as error:
            wrong = UploadRefused(
                "sha256",
                upload.expected_sha256,
                f"the received bytes have {error.actual}; the file changed, or was damaged in "
                "transfer: upload it again",
            )
        else:
            upload.expires = timezone.now() + LIFETIME
            upload.save(update_fields=["artifact", "expires"])
            if upload.project is not None:
                Charge.objects.get_or_create(project=upload.project, artifact=upload.artifact)
            return upload
    discard(upload)
    raise wrong


def discard(upload: Upload) -> None:
    """Deletes the upload and its bytes; its artifact, if any, is stored, and counts, until it is
    collected, unless something else refers to it."""
    Upload.objects.filter(pk=upload.pk).delete()
    path_of(upload).unlink(missing_ok=True)


def discard_with_artifact(upload: Upload) -> None:
    """Deletes the upload and its artifact, unless something else refers to that by now."""
    discard(upload)
    if upload.artifact is not None:
        store.remove(upload.artifact)


@receiver(access_changed)
def discard_unpermitted(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Discards uploads whose users may no longer add such files."""
    begun = Upload.objects.filter(project__workspace=workspace, created_by__in=user_ids)
    for upload in begun.select_related("project", "created_by"):
        if not may(upload.created_by, ACTIONS[Upload.Kind(upload.kind)], upload.project):
            path = path_of(upload)
            upload.delete()
            transaction.on_commit(partial(path.unlink, missing_ok=True))


def path_of(upload: Upload) -> Path:
    """Path of its bytes until it is finished."""
    return settings.UPLOADS_DIR / str(upload.pk)


def _refuse_size(project: Project, kind: Upload.Kind, size: int) -> None:
    most = settings.ARTIFACT_MOST_BYTES[kind]
    if size > most:
        reason = f"{Upload.Kind(kind).label}: {most} bytes at most; split or compress it"
        raise UploadRefused("size", size, reason, 413)
    room = room_of(project)
    if size > room:
        reason = (
            f"the project has room for {max(0, room)} bytes more of its "
            f"{settings.ARTIFACT_QUOTA_BYTES}: delete what it does not need, or have the "
            "server's operator raise GROVE_QUOTA_MIB"
        )
        raise UploadRefused("size", size, reason, 413)


def _refuse_zip(user: User, size: int) -> None:
    """Raises `UploadRefused` if the zips that the user has here would take more than one person's
    may."""
    most = settings.ARTIFACT_MOST_BYTES[Upload.Kind.WORKSPACE]
    mine = Upload.objects.filter(created_by=user.pk, project=None)
    others = mine.aggregate(sum=Sum("size"))["sum"] or 0
    if size + others > most:
        reason = (
            f"zips of workspaces: {most} bytes at most for one person, and your others have "
            f"{others}: wait until they are imported, or a day, delete them (DELETE "
            "/api/v1/uploads/ID), or have the server's operator raise GROVE_WORKSPACE_ZIP_MIB"
        )
        raise UploadRefused("size", size, reason, 413)


def _refuse_block(upload: Upload, size: int) -> None:
    if size > settings.ARTIFACT_CHUNK_BYTES:
        reason = f"send at most {settings.ARTIFACT_CHUNK_BYTES} bytes at once"
        raise UploadRefused("body", f"{size} bytes or more", reason, 413)
    if upload.received + size > upload.size:
        rest = upload.size - upload.received
        reason = f"of the {upload.size} bytes that were announced {rest} are missing: send no more"
        raise UploadRefused("body", f"{size} bytes", reason)


def _locked(upload: Upload) -> Upload:
    try:
        rows = Upload.objects.select_for_update(no_key=True, nowait=True)
        return get_object_or_404(rows, pk=upload.pk)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        reason = "another request is appending to this upload; read its offset, then continue"
        raise OffsetMismatch(upload.received, reason) from None


def _correct_received(upload: Upload, path: Path) -> None:
    """Lowers `received` to the file's size if the disk lost received bytes."""
    if upload.artifact_id is None:
        size = path.stat().st_size if path.exists() else 0
        upload.received = min(upload.received, size)


def described(upload: Upload) -> dict[str, Any]:
    """The upload as REST returns it."""
    return {
        "id": upload.pk,
        "project": upload.project_id,
        "kind": upload.kind,
        "name": upload.name,
        "size": upload.size,
        "offset": upload.received,
        "sha256": upload.artifact_id,
        "announced": upload.expected_sha256,
        "created": upload.created,
        "expires": upload.expires,
    }
