"""Reads of the model registry."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from webapp.accounts.models import User
from webapp.registry.models import Model, ModelVersion


def visible_models(user: User) -> QuerySet[Model]:
    """Models that `user` may see, by name, each with its versions, newest first."""
    versions = ModelVersion.objects.select_related(
        "parent__model", "run__experiment", "dataset_version__dataset"
    ).order_by("-number")
    return (
        Model.objects.visible_to(user)
        .select_related("project")
        .prefetch_related(Prefetch("versions", versions))
        .order_by("project", "name")
    )
