"""REST of models and their versions."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from webapp.artifacts.models import Upload
from webapp.artifacts.selectors import visible_uploads
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.registry import deletion, services
from webapp.registry.api.schemas import (
    Id,
    ModelList,
    ModelOut,
    NewModel,
    NewModelVersion,
    Number,
    VersionChange,
    VersionComparison,
    VersionDetail,
    VersionList,
)
from webapp.registry.model_files import imports
from webapp.registry.model_files.export import archive, archive_name
from webapp.registry.models import Model, ModelVersion
from webapp.registry.selectors import (
    compared_versions,
    visible_model,
    visible_models,
    visible_version,
    visible_versions,
)
from webapp.registry.versions import comparison
from webapp.registry.versions.cards import card
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid
from webapp.rest.queued import STATUS, QueuedOut

router = Router()
_WITHOUT_NUL = r"^[^\x00]*$"


class Filter(Cursor):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=100, pattern=_WITHOUT_NUL)
    """Part of the name, case-insensitive."""


class Compared(Schema):
    version: list[int] = Field(min_length=2, max_length=comparison.MOST_VERSIONS)
    """Ids of versions; the first is the baseline of the others."""


@router.get("", response=ModelList)
def list_models(request: HttpRequest, query: Query[Filter]):
    """Lists the models that you may see, each with its aliases and newest versions."""
    models = visible_models(request.user)
    if query.project is not None:
        models = models.filter(project=query.project)
    if query.name:
        models = models.filter(name__icontains=query.name)
    return page(models, "models", query)


@router.post("", response={201: ModelOut, STATUS: QueuedOut})
def create_model(request: HttpRequest, new: NewModel):
    """Creates a model with a first version of the uploads, or without versions if none are given.
    If the files are refused (422), no model is created and the uploads are deleted. 202 while
    others' are checked: repeat the request."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.ADD_MODELS, project)
    if new.uploads:
        uploads = _uploads(request, new.uploads)
        model = imports.import_first(project, new.name, uploads, request.user)
    else:
        model = imports.create_model(project, new.name, request.user)
    return Status(201, visible_model(request.user, model.pk))


@router.get("/comparison", response=VersionComparison)
def compare_versions(request: HttpRequest, query: Query[Compared]):
    """Returns differing lineage and settings, and paired bootstrap intervals of the evaluations."""
    versions = compared_versions(request.user, query.version)
    context = comparison.page(versions)
    pairs = [
        {"version": one.version.pk, "label": one.label, "source": one.source,
         "figures": one.figures}
        for one in context["pairs"]
    ]  # fmt: skip
    labels = [label for _, label in context["compared"]]
    differing = {name: context[name] for name in ("lineage", "settings")}
    return {"versions": versions, "labels": labels, "evaluations": pairs, **differing}


@router.get("/{int:model_id}", response=ModelOut)
def get_model(request: HttpRequest, model_id: Id):
    """Returns a model, its aliases and its newest versions."""
    return visible_model(request.user, model_id)


@router.delete("/{int:model_id}", response={204: None})
def delete_model(request: HttpRequest, model_id: Id):
    """Deletes the model with all versions; 409 names what refers to one of them."""
    model = visible_model(request.user, model_id)
    require(request.user, Action.DELETE_MODELS, model.project)
    deletion.delete_model(model)
    return Status(204, None)


@router.get("/{int:model_id}/versions", response=VersionList)
def list_versions(request: HttpRequest, model_id: Id, query: Query[Cursor]):
    """Lists all versions of a model, oldest first."""
    model = visible_model(request.user, model_id)
    return page(visible_versions(request.user).filter(model=model), "versions", query)


@router.post("/{int:model_id}/versions", response={201: VersionDetail, STATUS: QueuedOut})
def create_version(request: HttpRequest, model_id: Id, new: NewModelVersion):
    """Creates a version of uploaded files after checking them: 422 names the invalid file and the
    reason, and the uploads are deleted. Files equal to a version's return that version. 202
    while others' are checked: repeat the request."""
    model = visible_model(request.user, model_id)
    require(request.user, Action.ADD_MODELS, model.project)
    version = _imported(request, model, new)
    return Status(201, visible_version(request.user, model_id, version.number))


def _imported(request: HttpRequest, model: Model, new: NewModelVersion) -> ModelVersion:
    uploads = _uploads(request, new.uploads)
    parent = model.versions.filter(number=new.parent).first()
    if new.parent is not None and parent is None:
        raise Invalid("parent", new.parent, f"{model} has no such version", 404)
    return imports.import_uploads(model, uploads, parent, request.user)


def _uploads(request: HttpRequest, ids: list[uuid.UUID]) -> list[Upload]:
    by_id = visible_uploads(request.user).select_related("artifact").in_bulk(ids)
    if missing := [one for one in ids if one not in by_id]:
        reason = "you have no such upload; it may have been used or be older than a day"
        raise Invalid("uploads", str(missing[0]), reason, 409)
    return list(by_id.values())


@router.get("/{int:model_id}/versions/{int:number}", response=VersionDetail)
def get_version(request: HttpRequest, model_id: Id, number: Number):
    """Returns a version with its files, metrics and the objects that refer to it."""
    return visible_version(request.user, model_id, number)


@router.patch("/{int:model_id}/versions/{int:number}", response=VersionDetail)
def change_version(request: HttpRequest, model_id: Id, number: Number, change: VersionChange):
    """Changes the notes on the version's card. Nothing else of a version ever changes."""
    version = visible_version(request.user, model_id, number)
    require(request.user, Action.ADD_MODELS, version.model.project)
    services.write_notes(version, change.notes)
    return version


@router.delete("/{int:model_id}/versions/{int:number}", response={204: None})
def delete_version(request: HttpRequest, model_id: Id, number: Number):
    """Deletes a version; 409 names what refers to it."""
    version = visible_version(request.user, model_id, number)
    require(request.user, Action.DELETE_MODELS, version.model.project)
    deletion.delete_version(version)
    return Status(204, None)


def _answers(kind: str) -> dict[str, Any]:
    """Returns the OpenAPI entry of a response that is not JSON."""
    content = {kind: {"schema": {"type": "string"}}}
    return {"responses": {200: {"description": "OK", "content": content}}}


_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_CARD = _answers("text/markdown")
_ZIP = _answers("application/zip")
_ZIP["responses"][409] = {"description": "Its files no longer exist", "content": _PROBLEM}


@router.get("/{int:model_id}/versions/{int:number}/card", openapi_extra=_CARD)
def get_card(request: HttpRequest, model_id: Id, number: Number):
    """Returns the model card in markdown: a generated part, then people's notes."""
    version = visible_version(request.user, model_id, number)
    return HttpResponse(card(version), content_type="text/markdown; charset=utf-8")


@router.get("/{int:model_id}/versions/{int:number}/archive", openapi_extra=_ZIP)
def get_archive(request: HttpRequest, model_id: Id, number: Number):
    """Returns the version's files in Hugging Face layout, as a zip."""
    return zipped(visible_version(request.user, model_id, number))


def zipped(version: ModelVersion) -> StreamingHttpResponse:
    """Returns the archive as a streaming response."""
    response = StreamingHttpResponse(_sent(archive(version)), content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{archive_name(version)}"'
    return response


async def _sent(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    # A plain iterator would be read to its end before anything is sent.
    following = sync_to_async(partial(next, blocks, None), thread_sensitive=False)
    while (block := await following()) is not None:
        yield block
