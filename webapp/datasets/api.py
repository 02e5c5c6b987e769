"""REST of datasets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.selectors import visible_datasets
from webapp.paging import Cursor, page

router = Router()


class DatasetVersionOut(Schema):
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
    versions: list[DatasetVersionOut]

    @staticmethod
    def resolve_project(dataset: Dataset) -> int:
        return dataset.project_id

    @staticmethod
    def resolve_versions(dataset: Dataset) -> list[DatasetVersion]:
        return list(dataset.versions.all())


class DatasetList(Schema):
    datasets: list[DatasetOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@router.get("", response=DatasetList)
def list_datasets(request: HttpRequest, query: Query[Cursor]):
    """Datasets with their versions, newest first."""
    return page(visible_datasets(request.user), "datasets", query)
