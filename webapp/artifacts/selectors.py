"""Reads of the references to artifacts, and of how many bytes a project holds.

Invariant: references follow from the models' foreign keys, so that none can be missed.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db.models import PROTECT, Exists, ForeignKey, OuterRef, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.artifacts.models import Artifact, Upload
from webapp.projects.models import Project


def visible_uploads(user: User) -> QuerySet[Upload]:
    """Uploads of `user` that are in progress or finished, newest first."""
    return Upload.objects.visible_to(user).alive().order_by("-created", "-pk")


def references() -> Iterator[ForeignKey]:
    """Every foreign key by which a model refers to an artifact."""
    for relation in Artifact._meta.related_objects:
        if relation.on_delete is PROTECT:
            yield relation.field


def unreferenced() -> QuerySet[Artifact]:
    """Artifacts that nothing refers to."""
    artifacts = Artifact.objects.all()
    for key in references():
        held = key.model._base_manager.filter(**{key.name: OuterRef("pk")})
        artifacts = artifacts.exclude(Exists(held))
    return artifacts


def held_by(project: Project) -> set[str]:
    """SHA-256 of each content that the project refers to."""
    held: set[str] = set()
    for key in references():
        mine = key.model._default_manager.all()
        inside = mine.filter(**{mine.project_path: project, f"{key.name}__isnull": False})
        held.update(inside.values_list(key.attname, flat=True).distinct())
    return held


def bytes_of(project: Project) -> int:
    """Bytes stored for the project: each content that it refers to, once; what it sent and nothing
    refers to any more, until that is collected; and the announced sizes of its unfinished uploads,
    until they are removed."""
    unused = unreferenced().filter(charges__project=project).values("pk")
    artifacts = Artifact.objects.filter(Q(pk__in=held_by(project)) | Q(pk__in=unused))
    stored = artifacts.aggregate(sum=Sum("size"))["sum"] or 0
    announced = project.uploads.filter(artifact=None).aggregate(sum=Sum("size"))["sum"] or 0
    return stored + announced


def room_of(project: Project) -> int:
    """Bytes that the project may still store; negative if its quota was lowered."""
    return settings.ARTIFACT_QUOTA_BYTES - bytes_of(project)
