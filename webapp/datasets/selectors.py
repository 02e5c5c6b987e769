"""Reads of datasets."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from webapp.accounts.models import User
from webapp.datasets.models import Dataset, DatasetVersion


def visible_datasets(user: User) -> QuerySet[Dataset]:
    """Datasets that `user` may see, by name, each with its versions, newest first."""
    versions = DatasetVersion.objects.order_by("-number")
    return (
        Dataset.objects.visible_to(user)
        .select_related("project")
        .prefetch_related(Prefetch("versions", versions))
        .order_by("project", "name")
    )
