"""Adaptation of restored rows to the installation that they are in now.

Invariants: paths below the old data directory lead into the new one; what a process had at work has
no process any more, so its run has failed with that cause, in its log as in its row.
"""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from engine.events import vocabulary as ev
from engine.events.vocabulary import RunState
from webapp.experiments import services
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling import leases
from webapp.experiments.scheduling.states import HELD
from webapp.registry.models import ModelVersion
from workers.backup.manifest import Manifest
from workers.runs.log_shipper import Shipper, restore_log
from workers.runs.run_files import append_event, run_directory

LEASE_SECONDS = 600.0
_SETTINGS = ((Run, "config"), (Run, "given"), (Experiment, "config"))


def adopt(manifest: Manifest) -> int:
    """Adapts all rows; returns the number of runs that were active and have failed."""
    new = Path(settings.GROVE_VAR).resolve()  # as `registry.model_files.folders` names folders
    for old in dict.fromkeys((manifest.var, manifest.resolved_var)):
        if old != str(new):
            _move_paths(Path(old), new)
    cause = (
        f"it was active when the backup of {manifest.created} was made; resume it to continue "
        "from its last checkpoint"
    )
    just_taken = Run.objects.filter(state=RunState.QUEUED).exclude(lease_expires=None)
    just_taken.update(lease_owner="", lease_expires=None, dispatched_at=None)
    active = list(Run.objects.filter(state__in=HELD).order_by("pk"))
    for run in active:
        _fail(run, cause)
    return len(active)


@transaction.atomic
def _move_paths(old: Path, new: Path) -> None:
    versions = ModelVersion._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {versions} SET path = %s || substr(path, %s) WHERE starts_with(path, %s)",
            [f"{new}/", len(f"{old}/") + 1, f"{old}/"],
        )
        before, after = (json.dumps(f"{path}/", ensure_ascii=False)[:-1] for path in (old, new))
        for model, column in _SETTINGS:
            cursor.execute(
                f"UPDATE {model._meta.db_table} "
                f"SET {column} = replace({column}::text, %s, %s)::jsonb "
                f"WHERE strpos({column}::text, %s) > 0",
                [before, after, before],
            )


def _fail(run: Run, cause: str) -> None:
    leases.release(run.pk, run.fencing)
    fencing = leases.take_lease(run.pk, "restoration of a backup", LEASE_SECONDS)
    assert fencing is not None, "the lease was released, and nothing else runs here"
    if not run.outside:
        directory = run_directory(run.pk)
        directory.mkdir(parents=True, exist_ok=True)
        restore_log(run.pk, directory)
        append_event(run.pk, directory, ev.RunStateChanged(state=RunState.FAILED, reason=cause))
        shipper = Shipper(run.pk, fencing, directory)
        while shipper.ship():
            pass
    services.mark_failed(run.pk, fencing, cause)
