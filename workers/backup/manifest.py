"""Manifest of a backup: what the archive holds, by path and SHA-256, and what it was made of.

Invariants: a path is one of `runs/ID/...`, `artifacts/SHA256` and `secrets/secret_key`, and never
leads out of its folder; a manifest that says otherwise is refused before anything is written.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

import msgspec

from workers.backup.errors import BackupError

FORMAT = 1
"""Version of the archive's layout. A program reads this one and all before it."""
LONGEST_NAME = 255
"""Most bytes of a file's name on Linux."""
SECRET_KEY_PATH = "secrets/secret_key"  # nosec B105
_SHA256 = re.compile(r"[0-9a-f]{64}")
_RUN_PATH = re.compile(r"runs/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.+", re.DOTALL)


class Entry(msgspec.Struct, frozen=True):
    """One file. `bytes`: its size; `sha256`: of its content, by which the archive stores it."""

    path: str
    bytes: int
    sha256: str


class Absent(msgspec.Struct, frozen=True):
    """A file that a row names and that could not be included, and why."""

    path: str
    reason: str


class Manifest(msgspec.Struct, frozen=True):
    """Contents and origin of one archive."""

    grove: str
    """Version of the program that made it."""
    created: str
    """ISO 8601, UTC."""
    var: str
    """The data directory it was made of; paths below it move to the new one."""
    resolved_var: str
    """The same directory without symbolic links."""
    postgres: int
    """Major version of the database server."""
    key: str
    """`fingerprint` of the secret key, whether that is included or not."""
    database: Entry
    migrations: list[tuple[str, str]]
    """Every applied migration, as (app, name)."""
    tables: dict[str, int]
    """Rows by table, as they are in the dump."""
    files: list[Entry]
    absent: list[Absent]
    left_out: list[str]
    """Sentences: what is not in any backup, or not in this one."""
    format: int = FORMAT


class _Format(msgspec.Struct):
    """The only field that every version of the layout has."""

    format: int


def decoded(data: bytes) -> Manifest:
    """Returns the manifest.

    Raises:
        BackupError: it is of a newer layout, damaged, or names paths outside of an installation.
    """
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found > FORMAT:
            raise BackupError(
                f"The backup has layout {found}, and this version of Grove reads layouts up to "
                f"{FORMAT}. Restore it with the version that made it, or a newer one."
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise BackupError(f"The backup's manifest is damaged ({error}).") from None
    if manifest.database.bytes < 0:
        raise BackupError("The backup's manifest is damaged (a negative size).")
    _refuse_foreign_paths(manifest.files)
    return manifest


def _refuse_foreign_paths(files: list[Entry]) -> None:
    paths = [entry.path for entry in files]
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    seen: set[str] = set()
    for entry in files:
        if not _is_allowed(entry) or entry.path in seen or entry.path in folders:
            raise BackupError(
                f"The backup's manifest names {entry.path[:200]!r}, which no backup of Grove "
                "contains. It was changed by something else; nothing was restored."
            )
        seen.add(entry.path)


def fingerprint(secret_key: str) -> str:
    """Returns what identifies a secret key without revealing it."""
    return hashlib.sha256(b"workers.backup" + secret_key.encode()).hexdigest()[:16]


def _is_allowed(entry: Entry) -> bool:
    if entry.bytes < 0 or not _SHA256.fullmatch(entry.sha256):
        return False
    if entry.path in (SECRET_KEY_PATH, f"artifacts/{entry.sha256}"):
        return True
    parts = PurePosixPath(entry.path).parts
    is_plain = "/".join(parts) == entry.path and ".." not in parts and "\0" not in entry.path
    is_short = all(len(part.encode()) <= LONGEST_NAME for part in parts)
    return is_plain and is_short and bool(_RUN_PATH.fullmatch(entry.path))
