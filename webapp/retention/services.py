"""Deletion of runs: rows in one transaction, the folder once that is committed.

Invariants: nothing in use is deleted (`plan.refusals`, checked under the run's lock); a process
killed at any moment leaves the run whole, or its rows gone and its folder named by a `DeletedRun`
that a worker removes (`remove_next_folders`).
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Collection
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from webapp.accounts.services import announce_access
from webapp.experiments.models import Experiment, Run
from webapp.experiments.services import announce
from webapp.registry.model_files.folders import remove_unused
from webapp.registry.models import ModelVersion
from webapp.registry.services import lock
from webapp.retention.errors import DeletionRefused
from webapp.retention.models import DeletedRun
from webapp.retention.plan import comparisons_with, refusals, takes_experiment, versions_of
from webapp.sharing.models import ComparisonShare

logger = logging.getLogger(__name__)


def delete_run(run: Run, *, by_policy: bool = False) -> DeletedRun:
    """Deletes the run with everything of it (`plan.plan_of`).

    Raises:
        DeletionRefused: it is active, a stage of a pipeline, or something uses it.
        Run.DoesNotExist: somebody deleted it meanwhile.
    """
    with transaction.atomic():
        lock(run.project)  # before the run, as everything that registers versions
        locked = Run.objects.select_for_update(of=("self",)).select_related(
            "experiment__project__workspace"
        )
        run = locked.get(pk=run.pk)
        if reasons := list(refusals(run)):
            raise DeletionRefused(str(run), reasons)
        deleted = _delete_rows(run, by_policy)
    return deleted


def _delete_rows(run: Run, by_policy: bool) -> DeletedRun:
    # No run joins the experiment from here on, so none is deleted with it.
    Experiment.objects.select_for_update().get(pk=run.experiment_id)
    workspace = run.project.workspace
    deleted = DeletedRun.objects.create(
        run_id=run.pk, workspace=workspace, name=str(run)[:300], by_policy=by_policy
    )
    announce(run.pk)
    announce_access(*workspace.memberships.values_list("user", flat=True))
    comparisons_with(run).delete()
    compared = ComparisonShare.objects.filter(runs__contains=[run.pk])
    compared.valid().update(revoked_at=Now())  # recorded in other workspaces that it shows
    compared.delete()
    versions = list(versions_of(run))
    own = ModelVersion.objects.filter(pk__in=[one.pk for one in versions])
    own.update(parent=None)  # links within the set would protect its rows
    own.delete()
    (run.experiment if takes_experiment(run) else run).delete()
    paths = [one.path for one in versions]
    transaction.on_commit(partial(_remove_files, deleted.pk, paths))
    return deleted


def _remove_files(run_id: uuid.UUID, version_paths: Collection[str]) -> None:
    remove_unused(list(version_paths))
    remove_folder(run_id)


def remove_folder(run_id: uuid.UUID) -> bool:
    """Removes the folder of a deleted run; False if something of it could not be removed, which a
    worker tries again. Artifacts that nothing refers to any more are collected by themselves."""
    folder = Path(settings.RUNS_DIR) / str(run_id)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        # Also if another process removes it too: a file that is missing below ends a removal.
        if os.path.lexists(folder):
            logger.warning("the folder of the deleted run %s is not removed: %s", run_id, error)
            return False
    DeletedRun.objects.filter(pk=run_id).update(files_removed_at=Now())
    return True


def remove_next_folders() -> int:
    """Removes the folders that deletions left behind; returns how many."""
    pending = DeletedRun.objects.filter(files_removed_at=None).order_by("deleted_at")
    return sum(map(remove_folder, list(pending.values_list("pk", flat=True))))
