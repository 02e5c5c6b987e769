"""Making of a backup: links of the runs' files, then one snapshot of the database, then contents.

The order is what makes it consistent while runs go on: files are held before the snapshot is taken,
artifacts never change and none is removed meanwhile, and logs are cut where the snapshot ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from webapp import __version__
from webapp.artifacts.models import Artifact
from webapp.artifacts.store import open_artifact
from webapp.registry.models import ModelVersion
from workers.backup import archive, database, run_files
from workers.backup.archive import Archive
from workers.backup.errors import BackupError
from workers.backup.manifest import SECRET_KEY_PATH, Absent, Entry, Manifest, fingerprint

LEFT_OUT = (
    "exports of tables (they expire in days) and counts of rate limits",
    "unfinished uploads' bytes: clients send them again",
    "files in GROVE_DATASETS and GROVE_MODELS, logs of the services, caches",
)
NO_SECRETS = "the secret key and sessions; they are included by --secrets"


@dataclass(frozen=True, slots=True)
class Made:
    """A finished backup. `bytes`: size of the archive."""

    manifest: Manifest
    bytes: int


def make(path: Path, *, secrets: bool, report: Callable[[str], None] = lambda line: None) -> Made:
    """Writes a backup of this installation to `path`, a new file.

    `report` receives a line per stage.

    Raises:
        BackupError: `path` exists, another backup is being made, or pg_dump failed. Nothing is
            left of it.
        OSError: the archive cannot be written, as on a full disk. Nothing is left of it.
    """
    if os.path.lexists(path):  # a link to nothing too: it would be refused only at the end
        raise BackupError(f"{path} exists. Name a file that does not; nothing was replaced.")
    if not path.parent.is_dir():
        raise BackupError(f"{path.parent} is no directory. Create it first.")
    if not database.table_names():
        raise BackupError(
            f"There is nothing to back up: the database has no tables. Is GROVE_VAR = "
            f"{settings.GROVE_VAR} the data directory, or DATABASE_URL missing?"
        )
    with database.artifacts_held(), run_files.staging_folder() as held:
        report("holding the files of the runs")
        run_files.hold(held)
        with archive.writing(path) as made, database.snapshot() as snap:
            manifest = _fill(made, held, snap, secrets, report)
            made.finish(manifest)
    return Made(manifest, path.stat().st_size)


def _fill(
    made: Archive,
    held: Path,
    snap: database.Snapshot,
    secrets: bool,
    report: Callable[[str], None],
) -> Manifest:
    absent: list[Absent] = []
    without = database.NEVER_DUMPED + (() if secrets else (database.SESSIONS,))
    report("dumping the database")
    dump = made.add_database(database.dumped(snap, without=without))
    tables = database.counted_rows(without)
    report("copying artifacts")
    files = list(_artifacts(made, absent))
    absent += _unstored_models()
    report("copying runs")
    files += _runs(made, held, absent)
    if secrets:
        files.append(_secret_key(made, held))
    return Manifest(
        grove=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        var=str(settings.GROVE_VAR),
        resolved_var=str(Path(settings.GROVE_VAR).resolve()),
        postgres=snap.postgres,
        key=fingerprint(settings.SECRET_KEY),
        database=dump,
        migrations=snap.migrations,
        tables=tables,
        files=files,
        absent=absent,
        left_out=[*LEFT_OUT, *([] if secrets else [NO_SECRETS])],
    )


def _artifacts(made: Archive, absent: list[Absent]) -> Iterator[Entry]:
    """Adds every artifact; one that is lost or damaged must not prevent a backup of the others."""
    for sha256, size in Artifact.objects.order_by("pk").values_list("pk", "size").iterator():
        path = f"artifacts/{sha256}"
        try:
            with open_artifact(sha256) as content:
                blocks = iter(lambda content=content: content.read(archive.BLOCK), b"")
                yield made.add_known(path, blocks, size, sha256)
        except FileNotFoundError:
            absent.append(Absent(path, "it is not in the store"))
        except archive.WrongContent as error:
            absent.append(Absent(path, str(error)))


def _unstored_models() -> Iterator[Absent]:
    """Yields the folders of models whose files neither the store nor a run has yet."""
    runs = Path(settings.RUNS_DIR).resolve()
    missing = ModelVersion.objects.filter(Q(files=None) | Q(files__artifact=None)).distinct()
    for version in missing.select_related("model").order_by("pk"):
        if not Path(version.path).resolve().is_relative_to(runs):
            reason = f"no worker has stored the files of {version} yet"
            yield Absent(version.path, reason)


def _runs(made: Archive, held: Path, absent: list[Absent]) -> Iterator[Entry]:
    """Adds the files of the runs; one that somebody writes to meanwhile must not prevent a backup
    of the others."""
    for file in run_files.held_files(held, absent):
        try:
            yield made.add(file.path, file.source, file.bytes)
        except archive.WrongContent as error:
            absent.append(Absent(file.path, str(error)))


def _secret_key(made: Archive, held: Path) -> Entry:
    copy = held / "secret_key"
    copy.write_text(settings.SECRET_KEY)
    return made.add(SECRET_KEY_PATH, copy, copy.stat().st_size)
