"""Garbage collection of unreferenced artifacts, expired uploads, places in the queues of uploads,
and leftovers of crashes.

Invariants: a referenced artifact is never removed: the row is deleted first, under the lock of its
content, and the database refuses that while a key points at it. Anything younger than `GRACE`
stays, because its writer is about to refer to it.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from webapp.artifacts import store
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import unreferenced
from webapp.artifacts.services import discard
from webapp.artifacts.store import remove
from webapp.projects.turns import forget_turns

logger = logging.getLogger(__name__)

GRACE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Collected:
    """Counts of what was removed."""

    uploads: int
    """Expired uploads."""
    artifacts: int
    """Artifacts that nothing referred to."""
    files: int
    """Files without a row."""
    bytes: int


def collect(grace: timedelta = GRACE) -> Collected:
    """Removes expired uploads, artifacts that nothing refers to, and files without a row."""
    uploads = 0
    for upload in Upload.objects.filter(expires__lte=Now()):
        discard(upload)
        uploads += 1
    sizes = [artifact.size for artifact in _garbage(grace) if remove(artifact)]
    files = _remove_strays(grace) + _remove_partial_files(grace) + _remove_copies()
    forget_turns(grace)
    collected = Collected(uploads, len(sizes), files, sum(sizes))
    if collected != Collected(0, 0, 0, 0):
        logger.info("collected %s", collected)
    return collected


def _garbage(grace: timedelta) -> list[Artifact]:
    return list(unreferenced().filter(last_put__lte=timezone.now() - grace))


def _remove_strays(grace: timedelta) -> int:
    """Removes contents in the store whose row was never committed."""
    return sum(_remove_stray(name, grace) for name in list(_stored()))


def _stored() -> Iterator[str]:
    try:
        folders, _ = store.storage().listdir("")
    except FileNotFoundError:  # nothing was ever stored
        return
    for folder in folders:
        _, names = store.storage().listdir(folder)
        referenced = set(
            Artifact.objects.filter(pk__startswith=folder).values_list("pk", flat=True)
        )
        yield from sorted(set(names) - referenced)


def _remove_stray(sha256: str, grace: timedelta) -> bool:
    with transaction.atomic():
        if not store.may_remove():
            return False
        store.lock(sha256)
        name = store.name_of(sha256)
        has_row = Artifact.objects.filter(pk=sha256).exists()
        if has_row or store.storage().get_modified_time(name) > timezone.now() - grace:
            return False
        store.storage().delete(name)
    return True


def _remove_partial_files(grace: timedelta) -> int:
    """Removes files of uploads that are gone, for example with their project."""
    in_progress = {
        str(key) for key in Upload.objects.filter(artifact=None).values_list("pk", flat=True)
    }
    old = _files_before(settings.UPLOADS_DIR, time.time() - grace.total_seconds())
    return _unlink(path for path in old if path.name not in in_progress)


def _remove_copies() -> int:
    """Removes local copies of what the store no longer holds."""
    copies = list(_files_before(settings.ARTIFACT_COPIES_DIR, time.time()))
    names = [path.name for path in copies]
    stored = set(Artifact.objects.filter(pk__in=names).values_list("pk", flat=True))
    return _unlink(path for path in copies if path.name not in stored and path.name[0] != ".")


def _files_before(folder: Path, moment: float) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if path.lstat().st_mtime <= moment)


def _unlink(paths: Iterator[Path]) -> int:
    count = 0
    for path in paths:
        if path.is_dir():  # what was being read when its process died
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        count += 1
    return count
