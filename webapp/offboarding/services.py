"""Deletion of a workspace with all its contents.

Invariants: nothing is deleted that was not exported since its last change, nor while a run is
active; afterwards no row, no artifact that nothing else refers to, and no directory of its runs
remains. Of the audit records one remains: who deleted it, and when.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from webapp.accounts.services import announce_access
from webapp.artifacts import store
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import held_by
from webapp.artifacts.services import discard
from webapp.audit.services import delete_records
from webapp.comments.models import Comment
from webapp.datasets.models import Dataset, DatasetReport, DatasetVersion
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.states import ENDED
from webapp.exports.models import Export
from webapp.offboarding.errors import CloseRefused
from webapp.offboarding.state import state_of
from webapp.projects.models import Workspace
from webapp.registry.model_files.folders import remove_unused
from webapp.registry.models import Alias, Evaluation, Model, ModelImport, ModelUse, ModelVersion
from webapp.retention.models import DeletedRun
from webapp.sharing.models import ComparisonShare


def refusal(workspace: Workspace) -> str:
    """Why the workspace cannot be deleted now; empty if it can."""
    active = _runs(workspace).exclude(state__in=ENDED).count()
    if active:
        return f"{active} of its runs {'is' if active == 1 else 'are'} active: stop them."
    checks = DatasetReport.objects.filter(version__dataset__project__workspace=workspace)
    if checks.filter(state__in=("queued", "running")).exists():
        return "A dataset is being checked: wait until it is done."
    imports = ModelImport.objects.filter(project__workspace=workspace, finished=None)
    if imports.exists():
        return "A model is being imported: wait until it is done, or cancel it."
    if workspace.import_requests.filter(finished=None).exists():
        return "A workspace is being imported into it: wait until that is done, or cancel it."
    if not workspace.exports.filter(state=state_of(workspace)).exists():
        return "There is no export of its current contents: export the workspace first."
    return ""


def delete_workspace(workspace: Workspace, name: str) -> None:
    """Deletes everything in it; files follow once that is committed.

    Raises:
        CloseRefused: `name` is another one, or `refusal`.
    """
    with transaction.atomic():
        locked = Workspace.objects.select_for_update().get(pk=workspace.pk)
        if name != locked.name:
            raise CloseRefused(f"Type the name of the workspace: {locked.name}")
        if reason := refusal(locked):
            raise CloseRefused(reason)
        _delete(locked)


def _delete(workspace: Workspace) -> None:
    inside = {"project__workspace": workspace}
    runs = list(_runs(workspace).values_list("pk", flat=True))
    versions = ModelVersion.objects.filter(model__project__workspace=workspace)
    paths = list(versions.values_list("path", flat=True))
    contents = {sha for project in workspace.projects.all() for sha in held_by(project)}
    datasets = list(Dataset.objects.filter(**inside).values_list("pk", flat=True))
    models = list(Model.objects.filter(**inside).values_list("pk", flat=True))
    projects = list(workspace.projects.values_list("pk", flat=True))
    files = [one.path for one in Export.objects.filter(**inside)]
    announce_access(*workspace.memberships.values_list("user", flat=True))
    for upload in Upload.objects.filter(**inside):
        discard(upload)
    Comment.objects.filter(compared__run__in=runs).delete()
    compared = ComparisonShare.objects.filter(runs__overlap=runs)
    compared.valid().update(revoked_at=Now())  # recorded in the other workspaces that it shows
    compared.delete()
    # Rows that protect others are deleted first; links within a table are cut before its rows are
    # deleted.
    Alias.objects.filter(model__in=models).delete()
    ModelUse.objects.filter(version__in=versions).delete()
    Evaluation.objects.filter(version__in=versions).delete()
    versions.update(parent=None, dataset_version=None)
    Experiment.objects.filter(**inside).delete()
    Model.objects.filter(pk__in=models).delete()
    DatasetVersion.objects.filter(dataset__in=datasets).update(parent=None)
    Dataset.objects.filter(pk__in=datasets).delete()
    deleted = DeletedRun.objects.filter(workspace=workspace)
    runs_of_records = [*runs, *deleted.values_list("pk", flat=True)]
    deleted.exclude(files_removed_at=None).delete()
    deleted.update(name="")  # a worker still needs the others, to remove their folders
    workspace_id = workspace.pk
    workspace.delete()
    delete_records(workspace_id, runs_of_records, datasets, models, projects)
    transaction.on_commit(partial(_remove_files, runs, files, paths, contents))


def _remove_files(
    runs: Collection[uuid.UUID], files: list[Path], folders: list[str], contents: Collection[str]
) -> None:
    for run_id in runs:
        shutil.rmtree(Path(settings.RUNS_DIR) / str(run_id), ignore_errors=True)
    for path in files:
        path.unlink(missing_ok=True)
    remove_unused(folders)
    for artifact in Artifact.objects.filter(pk__in=contents):
        store.remove(artifact)


def _runs(workspace: Workspace) -> QuerySet[Run]:
    return Run.objects.filter(experiment__project__workspace=workspace)
