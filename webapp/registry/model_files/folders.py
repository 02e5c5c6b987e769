"""Folders of versions, which an engine loads as models.

Invariants: a folder exists completely or not at all, and never changes. The folder of an imported
version is named by its content, so that two versions of the same files share it; a run's version is
where the run wrote it. Once its files are artifacts, either can be restored at any time.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from webapp.artifacts.collecting import GRACE
from webapp.artifacts.store import link_or_copy, local_path
from webapp.registry.models import ModelVersion


def folder_of(sha256: Mapping[str, str]) -> Path:
    """Returns the folder of the files with these digests, by name, whether it exists or not."""
    lines = "".join(f"{name} {sha256[name]}\n" for name in sorted(sha256))
    digest = hashlib.sha256(lines.encode()).hexdigest()
    return Path(settings.MODEL_FOLDERS_DIR).resolve() / digest


def contents_of(version: ModelVersion) -> dict[str, str]:
    """Returns the SHA-256 of its files by name; empty until all of them are artifacts."""
    digests = dict(version.files.values_list("name", "artifact_id"))
    return {} if None in digests.values() else digests


def fill(contents: Mapping[str, str]) -> Path:
    """Returns the folder named by these files, created if missing.

    Raises: as `restore`.
    """
    folder = folder_of(contents)
    restore(folder, contents)
    return folder


def restore(folder: Path, contents: Mapping[str, str]) -> None:
    """Creates the folder with these files if it is missing.

    Raises:
        OSError: an artifact is not in the store, or the disk is full.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        for name, sha256 in contents.items():
            link_or_copy(local_path(sha256), draft / name)
        with suppress(OSError):  # a concurrent caller was first: its folder is the same
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_unused(paths: Sequence[str]) -> None:
    """Removes those of the folders that no version uses any more; keeps any outside of
    `MODEL_FOLDERS_DIR`."""
    ours = Path(settings.MODEL_FOLDERS_DIR).resolve()
    for path in map(Path, paths):
        if path.parent == ours and not ModelVersion.objects.filter(path=str(path)).exists():
            shutil.rmtree(path, ignore_errors=True)


def remove_strays(grace: timedelta = GRACE) -> int:
    """Removes folders that no version uses, as a crash leaves them, and returns their number. A
    folder younger than `grace` is kept, because it may be about to be registered."""
    ours = Path(settings.MODEL_FOLDERS_DIR).resolve()
    before = time.time() - grace.total_seconds()
    old = [path for path in ours.glob("*") if path.stat().st_mtime <= before]
    used = set(ModelVersion.objects.filter(path__in=map(str, old)).values_list("path", flat=True))
    strays = [path for path in old if str(path) not in used]
    for path in strays:
        shutil.rmtree(path, ignore_errors=True)
    return len(strays)
