"""Storage of versions that people create: from uploads, or from another version's good problems.

Invariants: a version is stored with all its problems, or not at all; the same problems in one
dataset are one version. An upload is read once, in a separate process, and not kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError, RestrictedError

from engine.config.errors import printable
from engine.problems.formats import DETECTED, FORMATS, OWN
from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.names import name_error
from webapp.artifacts.selectors import bytes_of, visible_uploads
from webapp.artifacts.services import discard_with_artifact
from webapp.datasets.errors import DatasetRefused, refused
from webapp.datasets.models import Dataset, DatasetProblem, DatasetVersion
from webapp.datasets.parsing.parse import Reading, Request, Source, read
from webapp.datasets.reports import request_validation
from webapp.datasets.selectors import uses
from webapp.datasets.services import next_number
from webapp.projects.models import Project

FORMAT_NAMES = (DETECTED, OWN, *FORMATS.every())
MOST_FILES = 64
_ROWS = 2000
_CHARACTERS = 4 << 20
"""Characters of statements, and rows, that are stored at once."""
KEEP = {
    "passed": (DatasetProblem.Check.PASSED,),
    "not-failed": (DatasetProblem.Check.PASSED, DatasetProblem.Check.UNVERIFIED),
}
"""Results of a check that may be kept."""


def add_version(
    project: Project,
    user: User,
    name: str,
    upload_ids: Sequence[uuid.UUID],
    format: str = DETECTED,
    note: str = "",
) -> tuple[DatasetVersion, bool]:
    """Returns the version with the problems of finished uploads, and whether it is new. Consumes
    the uploads, unless the failure was the server's: then they may be named again.

    Raises:
        DatasetRefused: a name, or an upload, cannot be used; nothing is left behind.
        Queued: it is not its turn; the uploads are kept.
        OSError: a file cannot be read or written here.
    """
    if reason := name_error(name):
        raise refused("name", name, reason)
    if format not in FORMAT_NAMES:
        raise refused("format", format, f"choose one of {', '.join(FORMAT_NAMES)}")
    uploads = _finished(project, user, upload_ids)
    spec = {
        "uploads": [
            {"name": one.name, "size": one.size, "sha256": one.artifact_id} for one in uploads
        ],
    }
    try:
        sources = [Source(store.local_path(one.artifact_id), one.name) for one in uploads]
        with read(sources, Request(project, user, sorted(upload_ids)), format) as reading:
            result = _stored(project, user, name, reading, spec, note, None)
    except DatasetRefused:
        _discard(uploads)
        raise
    _discard(uploads)
    return result


def _discard(uploads: Sequence[Upload]) -> None:
    for upload in uploads:
        discard_with_artifact(upload)


def derive_version(
    version: DatasetVersion, user: User, keep: str, note: str = ""
) -> tuple[DatasetVersion, bool]:
    """Returns the version with the problems of a checked one that `KEEP` selects, and whether it is
    new.

    Raises:
        DatasetRefused: it is not checked, or nothing or everything would be kept.
        Queued: it is not its turn.
    """
    if keep not in KEEP:
        raise refused("keep", keep, f"choose one of {', '.join(KEEP)}")
    if version.artifact_id is None or version.faulty is None:
        reason = f"{version} is not checked: start its check, and wait until it is done"
        raise refused("version", version.pk, reason, 409)
    selected = version.problems.filter(check_state__in=KEEP[keep]).order_by("number")
    if not selected.exists():
        reason = "no problem would be left; choose another set, or upload one"
        raise refused("keep", keep, reason, 409)
    spec = {"derived": {"from": version.number, "keep": keep}}
    lines = _lines_of(version, selected.values_list("offset", "length"))
    project = version.dataset.project
    request = Request(project, user, ["derive", version.pk, keep])
    with lines as path, read([Source(path, str(version))], request, OWN) as reading:
        return _stored(project, user, version.dataset.name, reading, spec, note, version)


def delete_version(version: DatasetVersion, user: User) -> None:
    """Deletes the version, and with the last one its dataset.

    Raises:
        DatasetRefused: something uses it; the message names what.
    """
    dataset = version.dataset
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=dataset.project_id)
        _refuse_used(version, user)
        try:
            DatasetVersion.objects.get(pk=version.pk).delete()
        except (ProtectedError, RestrictedError):  # used since the check
            _refuse_used(version, user)
            raise
        if not dataset.versions.exists():
            dataset.delete()
    _remove(version.artifact)


def delete_dataset(dataset: Dataset, user: User) -> None:
    """Deletes the dataset with all its versions. Raises `DatasetRefused` as `delete_version`."""
    versions = list(dataset.versions.select_related("artifact").order_by("-number"))
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=dataset.project_id)
        for version in versions:
            _refuse_used(version, user, within=dataset)
        dataset.versions.update(parent=None)
        dataset.delete()
    for version in versions:
        _remove(version.artifact)


def _finished(project: Project, user: User, ids: Sequence[uuid.UUID]) -> list[Upload]:
    if not 1 <= len(set(ids)) == len(ids) <= MOST_FILES:
        raise refused("uploads", len(ids), f"name 1 to {MOST_FILES} finished uploads, each once")
    by_id = {
        one.pk: one
        for one in visible_uploads(user)
        .filter(pk__in=ids, project=project, kind=Upload.Kind.DATASET)
        .select_related("artifact")
    }
    for one in ids:
        if one not in by_id:
            reason = "you have no such upload in this project; it may have expired"
            raise refused("uploads", str(one), reason, 409)
        if by_id[one].artifact_id is None:
            reason = "it is not finished: send the remaining bytes, then finish it"
            raise refused("uploads", str(one), reason, 409)
    return [by_id[one] for one in ids]


@transaction.atomic
def _stored(
    project: Project,
    user: User,
    name: str,
    reading: Reading,
    spec: dict[str, Any],
    note: str,
    parent: DatasetVersion | None,
) -> tuple[DatasetVersion, bool]:
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    dataset, _ = Dataset.objects.get_or_create(project=project, name=name)
    if existing := dataset.versions.filter(content_hash=reading.hash).first():
        return existing, False
    _refuse_quota(project, reading.problems.stat().st_size)
    newest = dataset.versions.filter(artifact__isnull=False).order_by("-number").first()
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=next_number(dataset),
        spec={**spec, "format": reading.format},
        content_hash=reading.hash,
        left_out=[printable(text) for text in reading.left_out],
        created_by=user,
        note=note,
        parent=parent or newest,
        artifact=store.put_file(reading.problems),
        statistics=reading.statistics,
    )
    store_rows(version, reading)
    request_validation(version, user)
    return version, True


def store_rows(version: DatasetVersion, reading: Reading) -> None:
    """Stores rows in batches: a small file may unpack to millions of problems, or to long ones."""
    batch: list[DatasetProblem] = []
    characters = 0
    for number, row in enumerate(reading.rows(), start=1):
        batch.append(_row(version, number, row))
        characters += len(batch[-1].statement)
        if len(batch) == _ROWS or characters > _CHARACTERS:
            DatasetProblem.objects.bulk_create(batch)
            batch, characters = [], 0
    DatasetProblem.objects.bulk_create(batch)


def _refuse_quota(project: Project, size: int) -> None:
    room = settings.ARTIFACT_QUOTA_BYTES - bytes_of(project)
    if size > room:
        reason = f"the project has room for {max(0, room)} bytes more: delete what it does not need"
        raise refused("uploads", size, reason, 413)


def _row(version: DatasetVersion, number: int, row: dict[str, Any]) -> DatasetProblem:
    texts = {name: printable(row.pop(name)) for name in ("problem", "statement", "entry_point")}
    tags = [printable(tag) for tag in row.pop("tags")]
    row["difficulty"] = min(row["difficulty"], 2**31 - 1)
    return DatasetProblem(version=version, number=number, tags=tags, **texts, **row)


@contextmanager
def _lines_of(version: DatasetVersion, spans: Any) -> Iterator[Path]:
    path = settings.UPLOADS_DIR / f"derived-{uuid.uuid4()}"
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    try:
        stored = store.local_path(version.artifact_id)
        with path.open("xb") as file, stored.open("rb") as content:
            for offset, length in spans.iterator():
                content.seek(offset)
                file.write(content.read(length))
        yield path
    finally:
        path.unlink(missing_ok=True)


def _refuse_used(version: DatasetVersion, user: User, within: Dataset | None = None) -> None:
    """Raises `DatasetRefused` if the version is used; names only uses that `user` may see."""
    all_uses, visible = (
        [one for one in uses(version, who) if within is None or one.dataset_id != within.pk]
        for who in (None, user)
    )
    if all_uses:
        names = ", ".join(f"{one.what} {one.name}" for one in visible[:10])
        more = len(all_uses) - len(visible[:10])
        listed = " and ".join(part for part in (names, f"{more} more" if more else "") if part)
        reason = f"it is used by {listed}: its users' training data must stay on record"
        raise refused("version", str(version), reason, 409)


def _remove(artifact: Artifact | None) -> None:
    if artifact is not None:
        store.remove(artifact)
