"""Records of complete exports of whole workspaces, and of what was imported of them.

Invariants: there is a `WorkspaceExport` only for an export of which every byte was sent, with the
state that it contains; and a `WorkspaceImport` with all that it created, in the same transaction,
in which the request that it completes ends, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from webapp.artifacts.models import Upload
from webapp.projects.models import Workspace
from webapp.queued_imports import ENDED_WITHOUT, QueuedImport

if TYPE_CHECKING:
    from webapp.accounts.models import User


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


class WorkspaceImportState(models.TextChoices):
    """States of `queued_imports.ImportState`, and one that waits for its user."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    CHECKED = "checked", "Checked"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class ImportRequestQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> ImportRequestQuerySet:
        """The user's own, hidden from everybody else; through a token, those into the workspace
        that it is bound to."""
        if not user.is_active:
            return self.none()
        mine = self.filter(created_by=user.pk)
        if user.token is None:
            return mine
        return mine.filter(into__in=Workspace.objects.visible_to(user).values("pk"))


class ImportRequest(QueuedImport):
    """An uploaded zip that a worker checks and, once its user has confirmed it, imports.
    `offboarding.imports.states` and `requests` are its only writers."""

    state = models.CharField(
        max_length=10, choices=WorkspaceImportState.choices, default=WorkspaceImportState.QUEUED
    )
    is_confirmed = models.BooleanField(default=False)
    """Whether to import it after its check."""
    summary = models.JSONField(null=True)
    """What the check has found (`offboarding.imports.checking.Summary`); null before."""

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    into = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, related_name="import_requests"
    )
    """Null for a new workspace."""
    name = models.CharField(max_length=100, blank=True)
    """Name of the new workspace; empty: as the exported one."""
    file = models.CharField(max_length=200)
    """Name of the uploaded file, as its user gave it."""
    upload = models.OneToOneField(
        Upload, on_delete=models.SET_NULL, null=True, related_name="import_request"
    )
    """The zip, as long as the import may still need it."""
    result = models.ForeignKey(
        WorkspaceImport, on_delete=models.SET_NULL, null=True, related_name="requests"
    )
    """Null until it is done, and once its workspace was deleted."""

    objects = ImportRequestQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["state", "lease_expires"], name="import_request_open")]

    def __str__(self) -> str:
        return self.file

    @property
    def can_retry(self) -> bool:
        """Whether it ended without a result and its file is still there."""
        return self.state in ENDED_WITHOUT and self.upload_id is not None

    @property
    def can_confirm(self) -> bool:
        """Whether it was checked, waits for its user, and its file is still there."""
        return self.state == WorkspaceImportState.CHECKED and self.upload_id is not None

    @property
    def can_cancel(self) -> bool:
        """Whether it is queued, running, or waits for its user."""
        return self.is_open or self.can_confirm

    @property
    def colour(self) -> str:
        """Name of the palette entry of its state."""
        return "amber" if self.state == WorkspaceImportState.CHECKED else super().colour
