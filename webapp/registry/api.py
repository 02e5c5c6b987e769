"""REST of the model registry."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from webapp.paging import Cursor, page
from webapp.registry.models import Model, ModelVersion
from webapp.registry.selectors import visible_models

router = Router()


class ModelVersionOut(Schema):
    id: int
    number: int
    sha256: str
    parameters: int
    created: datetime
    run: uuid.UUID | None
    agent: str
    step: int | None
    dataset_version: str | None
    parent: str | None
    metadata: dict[str, Any]

    @staticmethod
    def resolve_run(version: ModelVersion) -> uuid.UUID | None:
        return version.run_id

    @staticmethod
    def resolve_dataset_version(version: ModelVersion) -> str | None:
        return str(version.dataset_version) if version.dataset_version else None

    @staticmethod
    def resolve_parent(version: ModelVersion) -> str | None:
        return str(version.parent) if version.parent else None


class ModelOut(Schema):
    id: int
    name: str
    project: int
    versions: list[ModelVersionOut]

    @staticmethod
    def resolve_project(model: Model) -> int:
        return model.project_id

    @staticmethod
    def resolve_versions(model: Model) -> list[ModelVersion]:
        return list(model.versions.all())


class ModelList(Schema):
    models: list[ModelOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@router.get("", response=ModelList)
def list_models(request: HttpRequest, query: Query[Cursor]):
    """Models with their versions, newest first."""
    return page(visible_models(request.user), "models", query)
