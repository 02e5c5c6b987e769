"""Artifacts, stored bytes known by their content, and the uploads that deliver them.

Invariants: an artifact never changes; its name in the store is its SHA-256, never a user's text. A
reference to an artifact is a `ForeignKey(Artifact, on_delete=PROTECT)` in a model whose manager is
an `InProjectQuerySet`: the database itself then refuses to delete an artifact in use, and
`selectors` derive from those keys what a project holds. There is no other list of references. A
`Charge` is no reference: it is deleted with its artifact.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from webapp.projects.models import InProjectQuerySet, Project
from webapp.projects.permissions import Action, has_scope

if TYPE_CHECKING:
    from webapp.accounts.models import User


class Artifact(models.Model):
    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    """Bytes."""
    created = models.DateTimeField(auto_now_add=True)
    last_put = models.DateTimeField()
    """When the same content was stored last: a recent one is not collected."""

    def __str__(self) -> str:
        return self.sha256[:12]


class Charge(models.Model):
    """Records that a project sent a content, which counts towards its quota as long as the bytes
    are stored, even without a reference."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="charges")
    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="charges")

    objects = InProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "artifact"], name="one_charge_per_content")
        ]


class UploadQuerySet(InProjectQuerySet):
    def visible_to(self, user: User) -> UploadQuerySet:
        """The user's own, in the projects that they may see and, unless they act through a token
        that may not import workspaces, those of no project; hidden from everybody else."""
        mine = self.filter(created_by=user.pk)
        inside = Q(project__in=Project.objects.visible_to(user).values("pk"))
        if user.is_active and has_scope(user, Action.IMPORT):
            inside |= Q(project=None)
        return mine.filter(inside)

    def alive(self) -> UploadQuerySet:
        """Uploads that have not expired."""
        return self.filter(expires__gt=Now())


class Upload(models.Model):
    """A file being received: its bytes up to `received` are stored, in order."""

    class Kind(models.TextChoices):
        DATASET = "dataset", "problems of a dataset"
        MODEL = "model", "a file of a model"
        WORKSPACE = "workspace", "the zip of a workspace"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, related_name="uploads"
    )
    """The project that it is for; null for the zip of a workspace."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=200)
    """A plain base name (`names.name_error`), shown to people; no path is ever made of it."""
    size = models.BigIntegerField()
    expected_sha256 = models.CharField(max_length=64, blank=True)
    received = models.BigIntegerField(default=0)
    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, related_name="uploads"
    )
    """Its artifact; null until it is finished."""
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    """Postponed by every append; then the upload is removed."""

    objects = UploadQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["expires"], name="upload_expires")]

    def __str__(self) -> str:
        return self.name
