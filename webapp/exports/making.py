"""Writer of an export's file, off the web path: a worker calls `make`.

Invariants: all rows are of one moment (one snapshot of the database). The file appears whole or not
at all, and nothing of a failed one remains. Waits: for nothing but the database; it gives up at the
deadline, or at once if the worker ends, and then the export is queued again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Event

from django.db import connection, transaction

from engine.config.deadlines import EXPORT
from webapp import disk
from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import InvalidQuery, RunQuery, matching_runs
from webapp.experiments.selectors import visible_runs
from webapp.exports import services
from webapp.exports.columns import BATCH_ROWS, SOURCES, Row, Source
from webapp.exports.models import Export, Format, Table
from webapp.exports.writers import writer

logger = logging.getLogger(__name__)

MOST_BYTES = 4 << 30
BATCH_RUNS = 100


class _WorkerStopped(Exception):
    """Raised when the worker ends."""


class ExportFailed(Exception):
    """Raised if no file can be written; the message is for the user who requested it."""


def make(export: Export, closing: Event) -> None:
    """Writes the file of an export that the caller took, and records how it ended."""
    draft = export.path.with_suffix(f".{export.attempt}.part")
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        rows = _write(export, draft, closing)
        result = rows, draft.stat().st_size, _sha256(draft)
        draft.replace(export.path)
        if not services.finish(export, *result):
            export.path.unlink(missing_ok=True)
    except _WorkerStopped:
        services.give_back(export)
    except (ExportFailed, InvalidQuery) as error:
        services.fail(export, str(error))
    except Exception as error:
        logger.exception("export %s failed", export.pk)
        cause = disk.cause_of(error)
        services.fail(export, cause if disk.is_full(error) else f"{type(error).__name__}: {cause}")
    finally:
        draft.unlink(missing_ok=True)


def _write(export: Export, draft: Path, closing: Event) -> int:
    source, until = SOURCES[Table(export.table)], time.monotonic() + EXPORT.seconds
    runs = list(_runs_of(export).values_list("pk", flat=True))
    for run_id in runs:
        source.prepare(run_id)
        _check(draft, until, closing)
    file = writer(Format(export.format), draft, source.columns)
    written = 0
    try:
        with transaction.atomic():
            _use_one_snapshot()
            for rows in _batches(source, runs):
                file.add(rows)
                written += len(rows)
                _check(draft, until, closing)
    finally:
        file.close()
    _sync(draft)
    return written


def _runs_of(export: Export):
    """The export's runs, in the requested order, that its requester may see now."""
    if export.run_id:
        runs = visible_runs(export.created_by).filter(pk=export.run_id)
        if not runs.exists():
            raise ExportFailed("its requester may not see the run any more")
        return runs
    if (
        not type(export.project)
        .objects.visible_to(export.created_by)
        .filter(pk=export.project_id)
        .exists()
    ):
        raise ExportFailed("its requester may not see the project any more")
    return matching_runs(export.created_by, RunQuery(**export.filters, project=export.project_id))


def _batches(source: Source, runs: list) -> Iterator[list[Row]]:
    rows = _rows(source, runs)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def _rows(source: Source, run_ids: list) -> Iterator[Row]:
    for first in range(0, len(run_ids), BATCH_RUNS):
        ids = run_ids[first : first + BATCH_RUNS]
        runs = Run.objects.select_related("experiment__project", "created_by").in_bulk(ids)
        for run_id in ids:
            if run_id in runs:
                yield from source.rows(runs[run_id])


def _use_one_snapshot() -> None:
    # In a transaction within another, as in tests, the outer one decides.
    if len(connection.savepoint_ids) == 0:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _check(draft: Path, until: float, closing: Event) -> None:
    if closing.is_set():
        raise _WorkerStopped
    if time.monotonic() > until:
        raise ExportFailed(f"it was not done within {EXPORT.seconds / 60:g} minutes: export fewer "
                           f"runs; {EXPORT.remedy}")  # fmt: skip
    if draft.exists() and draft.stat().st_size > MOST_BYTES:
        raise ExportFailed(f"it is larger than {MOST_BYTES >> 30} GB: export fewer runs")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
