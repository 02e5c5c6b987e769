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
)


def forget(
    workspace_id: int,
    run_ids: Collection[uuid.UUID],
    dataset_ids: Collection[int],
    model_ids: Collection[int],
) -> None:
    """Deletes the records of a deleted workspace, of its runs, datasets and models; the record of
    its deletion remains."""
    found = [table.objects.filter(workspace=workspace_id) for table in _OF_WORKSPACES]
    found += [table.objects.filter(**{f"{key}__in": run_ids}) for table, key in _OF_RUNS.items()]
    found += [
        models.DatasetEvent.objects.filter(dataset__in=dataset_ids),
        models.ModelEvent.objects.filter(model__in=model_ids),
        models.PromotionEvent.objects.filter(model__in=model_ids),
        models.ComparisonEvent.objects.filter(pk__in=_comparisons_of_these_alone(run_ids)),
        models.WorkspaceEvent.objects.filter(pgh_obj=workspace_id).exclude(pgh_label="gone"),
    ]
    with pgtrigger.ignore(*(f"{rows.model._meta.label}:append_only" for rows in found)):
        for rows in found:
            rows.delete()


def _comparisons_of_these_alone(run_ids: Collection[uuid.UUID]) -> list[int]:
    """Records that name these runs, and no run of another workspace that still exists."""
    told = models.ComparisonEvent.objects.filter(runs__overlap=list(run_ids))
    runs_by_note = dict(told.values_list("pk", "runs"))
    others = set().union(*runs_by_note.values()) - set(run_ids)
    left = set(Run.objects.filter(pk__in=others).values_list("pk", flat=True))
    return [note for note, runs in runs_by_note.items() if left.isdisjoint(runs)]
