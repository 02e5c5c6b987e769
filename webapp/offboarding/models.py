"""Records of complete exports of whole workspaces, and of what was imported of them.

Invariants: there is a `WorkspaceExport` only for an export of which every byte was sent, with the
state that it contains; and a `WorkspaceImport` with all that it created, in the same transaction.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.projects.models import Workspace


class WorkspaceExport(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="exports")
    state = models.CharField(max_length=64)
    """Digest of the workspace at the start (`offboarding.state.state_of`)."""
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made = models.DateTimeField(auto_now_add=True)
    """When its last byte was sent."""


class WorkspaceImport(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="imports")
    digest = models.CharField(max_length=64)
    """SHA-256 of the export's manifest, by which it is recognised."""
    source = models.CharField(max_length=100)
    """Name of the exported workspace."""
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made = models.DateTimeField(auto_now_add=True)
    ids = models.JSONField()
    """Id here by id there, of each kind of object."""
    people = models.JSONField()
    """Account here by name there."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "digest"], name="imported_once")
        ]

    def __str__(self) -> str:
        return f"{self.source} into {self.workspace}"
