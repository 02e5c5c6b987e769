"""Records of deleted runs, how long a workspace keeps its runs, and which ones it deletes next.

Invariants: a `DeletedRun` is written in the transaction that deletes the run's rows, and names its
folder until that is gone, so that a process killed in between leaves nothing behind for good. The
policy of a workspace deletes no run that was not announced `policy.NOTICE` before.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from webapp.experiments.models import InRunQuerySet, Run
from webapp.projects.models import Workspace


class RetentionPolicy(models.Model):
    """How long a workspace keeps runs that have ended. Without a row it keeps them for good."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="+")
    days = models.PositiveSmallIntegerField()
    """Since the end of a run."""
    unused_versions = models.BooleanField(default=False)
    """Whether runs are deleted too whose registered model versions nothing uses, with these."""
    checked_at = models.DateTimeField(null=True)
    """When a worker last applied it; null: it is due."""


class PlannedDeletion(models.Model):
    """A run that the workspace's policy is going to delete, of which its people were notified."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    announced_at = models.DateTimeField(auto_now_add=True)

    objects = InRunQuerySet.as_manager()


class DeletedRun(models.Model):
    """A run that no longer exists."""

    run_id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.SET_NULL, null=True, related_name="+")
    """Null once the workspace is deleted as well."""
    name = models.CharField(max_length=300)
    by_policy = models.BooleanField(default=False)
    """Whether the workspace's policy deleted it, and no person."""
    deleted_at = models.DateTimeField(auto_now_add=True)
    files_removed_at = models.DateTimeField(null=True)
    """When the last file of its folder was removed; null while some may be left."""

    class Meta:
        indexes = [
            models.Index(
                fields=["deleted_at"],
                condition=Q(files_removed_at=None),
                name="deleted_run_with_files",
            )
        ]

    def __str__(self) -> str:
        return self.name
