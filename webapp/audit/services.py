"""Deletion of audit records: the only way by which one is removed."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import pgtrigger

from webapp.audit import models
from webapp.experiments.models import Run

_OF_RUNS = {
    models.ShareEvent: "run",
    models.RunActionEvent: "run",
    models.CommentEvent: "run",
    models.RunMarkEvent: "pgh_obj",
}
_OF_WORKSPACES = (
    models.MembershipEvent,
    models.InvitationEvent,
    models.ProjectEvent,
    models.TokenEvent,
    models.SettingEvent,
    models.AlertRuleEvent,
    models.RunDeletionEvent,
    models.RetentionEvent,
)


def delete_records(
    workspace_id: int,
    run_ids: Collection[uuid.UUID],
    dataset_ids: Collection[int],
    model_ids: Collection[int],
    project_ids: Collection[int],
) -> None:
    """Deletes the records of a deleted workspace, of its runs, datasets, models and projects; the
    record of its deletion remains."""
    tables = [model.objects.filter(workspace=workspace_id) for model in _OF_WORKSPACES]
    tables += [model.objects.filter(**{f"{key}__in": run_ids}) for model, key in _OF_RUNS.items()]
    tables += [
        models.DatasetEvent.objects.filter(dataset__in=dataset_ids),
        models.ModelEvent.objects.filter(model__in=model_ids),
        models.PromotionEvent.objects.filter(model__in=model_ids),
        models.AlertChannelEvent.objects.filter(project__in=project_ids),
        models.ReportPageEvent.objects.filter(project__in=project_ids),
        models.ReportShareEvent.objects.filter(project__in=project_ids),
        models.ComparisonEvent.objects.filter(pk__in=_comparisons_only_of(run_ids)),
        models.WorkspaceEvent.objects.filter(pgh_obj=workspace_id).exclude(pgh_label="gone"),
    ]
    with pgtrigger.ignore(*(f"{rows.model._meta.label}:append_only" for rows in tables)):
        for rows in tables:
            rows.delete()


def _comparisons_only_of(run_ids: Collection[uuid.UUID]) -> list[int]:
    """Records that name these runs, and no run of another workspace that still exists."""
    records = models.ComparisonEvent.objects.filter(runs__overlap=list(run_ids))
    runs_by_record = dict(records.values_list("pk", "runs"))
    others = set().union(*runs_by_record.values()) - set(run_ids)
    left = set(Run.objects.filter(pk__in=others).values_list("pk", flat=True))
    return [record for record, runs in runs_by_record.items() if left.isdisjoint(runs)]
