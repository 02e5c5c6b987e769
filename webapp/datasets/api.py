"""REST of datasets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.selectors import visible_datasets

router = Router()


class VersionOut(Schema):
    id: int
    number: int
    spec: dict[str, Any]
    content_hash: str
    left_out: list[str]
    created: datetime


class DatasetOut(Schema):
    id: int
    name: str
    project: int
    versions: list[VersionOut]

    @staticmethod
    def resolve_project(dataset: Dataset) -> int:
        return dataset.project_id

    @staticmethod
    def resolve_versions(dataset: Dataset) -> list[DatasetVersion]:
        return list(dataset.versions.all())


@router.get("", response=list[DatasetOut])
def list_datasets(request: HttpRequest):
    """Datasets with their versions, newest first."""
    return visible_datasets(request.user)
