"""Restoration of a backup into an empty installation.

Invariants: every content is read and compared before anything changes; what a failed restoration
has made is removed again. A run that was active when the backup was made has failed afterwards, for
that cause, and can be resumed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command

from webapp import __version__
from webapp.artifacts import store
from webapp.operations import schema
from workers.backup import database
from workers.backup.adoption import adopt
from workers.backup.archive import DATABASE, Backup, reading
from workers.backup.errors import BackupError
from workers.backup.manifest import SECRET_KEY_PATH, Entry, Manifest, fingerprint

ARTIFACTS, RUNS = "artifacts/", "runs/"
MIN_FREE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `interrupted`: runs that have failed because they were active."""

    manifest: Manifest
    interrupted: int
    same_key: bool
    """Whether this installation has the secret key of the backup."""


@contextmanager
def checked(path: Path, *, report: Callable[[str], None] = lambda line: None) -> Iterator[Backup]:
    """Opens an archive for `restore` and checks all of it. Needs no database and writes nothing.

    Raises:
        BackupError: the archive is unusable, there is no room for it, or this installation has
            runs.
    """
    with reading(path) as backup:
        _refuse_runs()
        _refuse_newer_schema(backup.manifest)
        _refuse_without_room(backup.manifest)
        report("checking every file of the backup")
        backup.verify()
        yield backup


def restore(backup: Backup, *, report: Callable[[str], None] = lambda line: None) -> Restored:
    """Restores a `checked` archive into this installation. `report` receives a line per stage.

    Raises:
        BackupError: this installation is not empty, or the dump cannot be restored. What was
            written is removed again.
        OSError: a file cannot be written, as on a full disk. What was written is removed again.
    """
    _refuse_runs()
    _refuse_database(backup.manifest)
    with _undone_on_failure() as undo:
        report("restoring files")
        _restore_files(backup, undo)
        report("restoring the database")
        _restore_database(backup, undo)
        report("adapting it to this installation")
        interrupted = adopt(backup.manifest)
        same_key = _restore_key(backup)
    return Restored(backup.manifest, interrupted, same_key)


def _refuse_runs() -> None:
    runs = Path(settings.RUNS_DIR)
    if runs.is_dir() and any(runs.iterdir()):
        raise BackupError(
            f"{runs} is not empty. Restore into an empty installation: another GROVE_VAR."
        )


def _refuse_database(manifest: Manifest) -> None:
    tables, functions = database.table_names(), database.function_names()
    if tables or functions:
        raise BackupError(
            f"The database is not empty: it has {len(tables)} tables and {len(functions)} "
            "functions. Restore into an empty installation: another GROVE_VAR, or a new database "
            "in DATABASE_URL."
        )
    if (here := database.server_version()) < manifest.postgres:
        raise BackupError(
            f"The backup is of Postgres {manifest.postgres}, and this database is Postgres {here}. "
            f"Restore it into Postgres {manifest.postgres} or newer."
        )


def _refuse_newer_schema(manifest: Manifest) -> None:
    applied = frozenset(manifest.migrations)
    if unknown := [f"{app}.{name}" for app, name in sorted(applied - schema.known())]:
        raise BackupError(
            f"The backup was made by Grove {manifest.grove} with a schema that this version "
            f"({__version__}) does not know: {unknown[-1]}. Install Grove {manifest.grove} or "
            "newer."
        )


def _refuse_without_room(manifest: Manifest) -> None:
    is_bucket = not isinstance(store.storage(), FileSystemStorage)
    files = [
        entry.bytes
        for entry in manifest.files
        if not (is_bucket and entry.path.startswith(ARTIFACTS))
    ]
    needed = sum(files) + 3 * manifest.database.bytes + MIN_FREE_BYTES
    free = shutil.disk_usage(settings.GROVE_VAR).free
    if free < needed:
        raise BackupError(
            f"{settings.GROVE_VAR} has {free / 2**30:.1f} GiB free, and the backup needs about "
            f"{needed / 2**30:.1f} GiB. Free some space, or name another disk in GROVE_VAR."
        )


@contextmanager
def _undone_on_failure() -> Iterator[ExitStack]:
    """Yields a stack of steps that undo what was done, which are taken if anything is raised."""
    with ExitStack() as undo:
        yield undo
        undo.pop_all()


def _restore_files(backup: Backup, undo: ExitStack) -> None:
    staging = Path(settings.GROVE_VAR) / "restore"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    undo.callback(shutil.rmtree, staging, ignore_errors=True)
    undo.callback(_empty, Path(settings.RUNS_DIR))
    for entry in backup.manifest.files:
        if entry.path.startswith(ARTIFACTS):
            _restore_artifact(backup, entry, staging, undo)
        elif entry.path.startswith(RUNS):
            _write(backup, entry, Path(settings.RUNS_DIR) / entry.path.removeprefix(RUNS))
    shutil.rmtree(staging)


def _empty(folder: Path) -> None:
    """Removes what is in a folder, which may be a volume of its own, or a link to one."""
    for path in folder.glob("*"):
        shutil.rmtree(path, ignore_errors=True)


def _restore_artifact(backup: Backup, entry: Entry, staging: Path, undo: ExitStack) -> None:
    name = store.name_of(entry.sha256)
    if store.storage().exists(name):  # of a shared bucket; its name says what it is
        return
    staged = staging / "artifact"
    _write(backup, entry, staged)
    undo.callback(store.storage().delete, name)
    with staged.open("rb") as file:
        store.storage().save(name, File(file))
    staged.unlink()


def _write(backup: Backup, entry: Entry, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for block in backup.content(entry):
            file.write(block)


def _restore_database(backup: Backup, undo: ExitStack) -> None:
    dump = Path(settings.GROVE_VAR) / DATABASE
    dump.unlink(missing_ok=True)
    undo.callback(dump.unlink, missing_ok=True)
    _write(backup, backup.manifest.database, dump)
    undo.callback(database.emptied)
    database.restored(dump)
    dump.unlink()
    if (counts := database.counted_rows()) != backup.manifest.tables:
        wrong = sorted(set(counts.items()) ^ set(backup.manifest.tables.items()))
        raise BackupError(f"The restored tables have other rows than were backed up: {wrong[:6]}.")
    call_command("migrate", verbosity=0, interactive=False)


def _restore_key(backup: Backup) -> bool:
    """Writes the secret key, if it is in the archive; returns whether this installation has it.

    Raises:
        BackupError: the archive has another key than it says.
    """
    keys = [entry for entry in backup.manifest.files if entry.path == SECRET_KEY_PATH]
    path = Path(settings.GROVE_VAR) / "secret_key"
    is_set = fingerprint(settings.SECRET_KEY) == backup.manifest.key
    if is_set or not keys or os.environ.get("GROVE_SECRET_KEY") or not path.is_file():
        return is_set
    draft = path.with_name("secret_key.restored")
    draft.unlink(missing_ok=True)  # of a restoration that was killed
    _write(backup, keys[0], draft)
    if fingerprint(draft.read_text(errors="replace")) != backup.manifest.key:
        draft.unlink()
        raise BackupError(f"{backup.path} is damaged: {SECRET_KEY_PATH} is another key.")
    draft.replace(path)
    return True
