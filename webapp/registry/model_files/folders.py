"""Folders of versions: what an engine is given as a model.

Invariants: a folder is there whole or not at all, and never changed. That of what came in from
outside is named by its content, so that two versions of the same files share it; what a run made
lies where the run wrote it. Once its files are artifacts, either can be made again at any time.
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
    """Where the files of these digests, by name, are or will be together."""
    lines = "".join(f"{name} {sha256[name]}\n" for name in sorted(sha256))
    digest = hashlib.sha256(lines.encode()).hexdigest()
    return Path(settings.MODEL_FOLDERS_DIR).resolve() / digest


def contents_of(version: ModelVersion) -> dict[str, str]:
    """SHA-256 by name of its files; none until all of them are artifacts."""
    found = dict(version.files.values_list("name", "artifact_id"))
    return {} if None in found.values() else found


def fill(contents: Mapping[str, str]) -> Path:
    """The folder that is named by these files, made if it is not there yet.

    Raises: as `restore`.
    """
    folder = folder_of(contents)
    restore(folder, contents)
    return folder


def restore(folder: Path, contents: Mapping[str, str]) -> None:
    """Make the folder with these files if it is not there.

    Raises:
        OSError: an artifact is not in the store, or there is no room.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        for name, sha256 in contents.items():
            link_or_copy(local_path(sha256), draft / name)
        with suppress(OSError):  # somebody else was first: theirs is the same
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_unused(paths: Sequence[str]) -> None:
    """Remove those of the folders that no version has any more; what lies elsewhere stays."""
    ours = Path(settings.MODEL_FOLDERS_DIR).resolve()
    for path in map(Path, paths):
        if path.parent == ours and not ModelVersion.objects.filter(path=str(path)).exists():
            shutil.rmtree(path, ignore_errors=True)


def remove_strays(grace: timedelta = GRACE) -> int:
    """Remove folders that no version has, as a crash leaves them; returns how many. What is younger
    than `grace` stays, because whoever filled it is about to register it."""
    ours = Path(settings.MODEL_FOLDERS_DIR).resolve()
    before = time.time() - grace.total_seconds()
    old = [path for path in ours.glob("*") if path.stat().st_mtime <= before]
    known = set(ModelVersion.objects.filter(path__in=map(str, old)).values_list("path", flat=True))
    strays = [path for path in old if str(path) not in known]
    for path in strays:
        shutil.rmtree(path, ignore_errors=True)
    return len(strays)
