"""Files of the runs' directories as of one moment, while their engines go on.

Invariants: nothing in a run's directory is changed. Files are held by hard links, so that what an
engine or a person removes meanwhile stays readable until the backup is made; a file that cannot be
linked is copied. Of a log, the events that the database has are included and no more; a checkpoint
is included if its event is among them.

Left out: what belongs to a process that is alive (`_VOLATILE`), drafts, partial and damaged
checkpoints.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from engine.events.log import FILE_NAME as EVENTS
from webapp.artifacts.store import link_or_copy
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD
from webapp.telemetry.models import Event
from workers.backup.errors import BackupError
from workers.backup.manifest import Absent
from workers.runs.engine_parent import EXIT_FILE, PID_FILE
from workers.runs.engine_process import LEASE_FILE
from workers.runs.log_shipper import offset_after

CHECKPOINTS = "checkpoints"
_VOLATILE = {PID_FILE, EXIT_FILE, LEASE_FILE}
_STEP = "step-"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file to include: its path in the archive, where it is held, and how much of it counts."""

    path: str
    source: Path
    bytes: int


def hold(folder: Path) -> None:
    """Links the files of every run into `folder`/ID. Call it before the snapshot: of a checkpoint
    that is linked, the event is then in the snapshot, or the checkpoint is too new for it."""
    runs = Path(settings.RUNS_DIR)
    if not runs.is_dir():
        return
    for directory in sorted(runs.iterdir()):
        if _is_id(directory.name) and directory.is_dir() and not directory.is_symlink():
            with suppress(FileNotFoundError):  # its workspace is deleted meanwhile
                _hold_directory(directory, folder / directory.name)


def held_files(folder: Path, absent: list[Absent]) -> Iterator[HeldFile]:
    """Yields the files of the runs that the snapshot has; call it in the snapshot's transaction.

    Appends to `absent` what a run lacks.
    """
    runs = Run.objects.order_by("pk").values_list("pk", "state", "head_seq")
    for run_id, state, head in runs.iterator():
        held = folder / str(run_id)
        if held.is_dir():
            too_new = _steps_after_snapshot(run_id, held) if state in HELD else set()
            yield from _files_of(run_id, held, head, too_new, absent)


def _files_of(
    run_id: uuid.UUID, held: Path, head: int, too_new: set[str], absent: list[Absent]
) -> Iterator[HeldFile]:
    for source in sorted(path for path in held.rglob("*") if path.is_file()):
        inside = source.relative_to(held)
        if inside.parts[0] == CHECKPOINTS and inside.parts[1] in too_new:
            continue
        path = f"runs/{run_id}/{inside.as_posix()}"
        if not _is_text(path):
            absent.append(Absent(path.encode(errors="replace").decode(), "its name is no UTF-8"))
            continue
        try:
            size = offset_after(source, head) if inside == Path(EVENTS) else source.stat().st_size
        except ValueError as error:  # the disk lost lines; a restoration writes them back
            absent.append(Absent(path, str(error)))
            continue
        yield HeldFile(path, source, size)


def _steps_after_snapshot(run_id: uuid.UUID, held: Path) -> set[str]:
    """Returns the names of the checkpoints whose event the snapshot does not have."""
    saved = Event.objects.filter(run=run_id, kind="checkpoint.saved")
    steps = set(saved.values_list("payload__step", flat=True))
    names = {path.name for path in (held / CHECKPOINTS).glob(f"{_STEP}*")}
    return {name for name in names if int(name.removeprefix(_STEP)) not in steps}


def _hold_directory(source: Path, target: Path) -> None:
    """Links a directory. Raises `FileNotFoundError` if a checkpoint is removed meanwhile: it is
    renamed first, so that what was linked of it may be a part."""
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if not _is_left_out(path):
            try:
                if path.is_dir():
                    _hold_directory(path, target / path.name)
                else:
                    link_or_copy(path, target / path.name)
            except FileNotFoundError:
                if any(parent.name.startswith(_STEP) for parent in (source, *source.parents)):
                    raise
                shutil.rmtree(target / path.name, ignore_errors=True)


def _is_left_out(path: Path) -> bool:
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return True
    if path.parent.name == CHECKPOINTS:
        return not path.name.startswith(_STEP)
    return path.name in _VOLATILE or path.name.endswith(".draft")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # bytes that Python decoded as surrogates
        return False
    return True


def _is_id(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False


@contextmanager
def staging_folder() -> Iterator[Path]:
    """Yields an empty folder on the disk of the runs, which is removed afterwards, as is what a
    killed backup left. Call it only while removals are held: then no other backup is made."""
    folder = Path(settings.GROVE_VAR) / "backup"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BackupError(f"{folder} cannot be written: {error.strerror}.") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
