"""REST of uploads: begin, append bytes at an offset, finish; other modules document their uses.

As in tus (tus.io) and the draft "Resumable Uploads for HTTP", `Upload-Offset` is the position of
the bytes; an interrupted client requests the upload's offset by HEAD and resumes from there. A
client that may upload may also read the offset, whether or not its token reads anything else.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Header, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.authentication import ActiveSession
from webapp.artifacts import services
from webapp.artifacts.models import Upload
from webapp.artifacts.names import LIKE, LONGEST
from webapp.artifacts.selectors import visible_uploads
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require, require_scope
from webapp.rest.json_types import Integer
from webapp.rest.pagination import LARGEST_ID
from webapp.rest.problem_details import Invalid
from webapp.tokens.authentication import Bearer

router = Router()
_OFFSET_AUTH = [Bearer(Action.READ, Action.UPLOAD), ActiveSession()]
_NUMBER = {"schema": {"type": "integer", "minimum": 0}}
_OFFSET_RESPONSE = {
    200: {
        "description": "Offset and length of the upload",
        "headers": {
            "Upload-Offset": {**_NUMBER, "description": "Bytes received"},
            "Upload-Length": {**_NUMBER, "description": "Bytes announced"},
            "Upload-Complete": {
                "schema": {"type": "string", "enum": ["?0", "?1"]},
                "description": "Whether it is finished",
            },
        },
    }
}
_OFFSET = r"^(0|[1-9][0-9]{0,14})$"
"""An integer as headers write it (RFC 9651, 3.3.1)."""
_BYTES = {"type": "string", "format": "binary"}


class UploadOut(Schema):
    id: uuid.UUID
    project: int | None
    """Null for the zip of a workspace."""
    kind: Upload.Kind
    name: str
    size: int
    offset: int
    """Bytes received; those from here on are still to be sent."""
    sha256: str | None
    """Of its content, once it is finished."""
    announced: str
    """The SHA-256 that its bytes must have; empty if none was given."""
    created: datetime
    expires: datetime
    """It is removed then, unless more bytes arrive."""


class NewUpload(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"project": 1, "kind": "dataset", "name": "problems.jsonl", "size": 48_213}
            ],
            "oneOf": [
                {
                    "properties": {
                        "project": {"type": "integer"},
                        "kind": {"enum": ["dataset", "model"]},
                    },
                    "required": ["project"],
                },
                {"properties": {"project": {"type": "null"}, "kind": {"enum": ["workspace"]}}},
            ],
        },
    )

    project: Annotated[Integer, Field(ge=0, le=LARGEST_ID)] | None = None
    """The project that it is for; leave it out for the zip of a workspace."""
    kind: Upload.Kind
    name: str = Field(max_length=LONGEST, json_schema_extra={"pattern": LIKE, "minLength": 1})
    """The file's own name, without a folder."""
    size: Integer = Field(ge=1, le=LARGEST_ID)
    """Bytes."""
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$")
    """If given, the received bytes must have this SHA-256."""


class UploadList(Schema):
    uploads: list[UploadOut]


class Which(Schema):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    kind: Upload.Kind | None = None
    announced: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """SHA-256 that was announced: lists the uploads of one file."""


@router.post("", response={201: UploadOut})
def create_upload(request: HttpRequest, new: NewUpload):
    """Announces a file; its bytes are sent to `/uploads/{upload_id}`."""
    project = _project(request, new)
    fields = (new.kind, new.name, new.size, new.sha256)
    return Status(201, services.described(services.begin(project, request.user, *fields)))


def _project(request: HttpRequest, new: NewUpload) -> Project | None:
    """Returns the project of a new upload, in which its user may add such files."""
    action = services.ACTIONS[new.kind]
    if new.kind == Upload.Kind.WORKSPACE:
        require_scope(request.user, action)
        if new.project is not None:
            raise Invalid(
                "project", new.project, "the zip of a workspace is for none; leave it out"
            )
        return None
    if new.project is None:
        raise Invalid("project", None, "give the id of the project that the file is for")
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, action, project)
    return project


@router.get("", response=UploadList, auth=_OFFSET_AUTH)
def list_uploads(request: HttpRequest, query: Query[Which]):
    """Lists your 200 newest uploads that are in progress, or finished and not expired yet."""
    filters = {name: value for name, value in query.dict().items() if value is not None}
    if announced := filters.pop("announced", None):
        filters["expected_sha256"] = announced
    uploads = visible_uploads(request.user).filter(**filters)[:200]
    return {"uploads": [services.described(services.refreshed(upload)) for upload in uploads]}


@router.get("/{uuid:upload_id}", response=UploadOut, auth=_OFFSET_AUTH)
def get_upload(request: HttpRequest, upload_id: uuid.UUID):
    """Returns the upload with its offset."""
    upload = get_object_or_404(visible_uploads(request.user), pk=upload_id)
    return services.described(services.refreshed(upload))


@router.api_operation(
    ["HEAD"],
    "/{uuid:upload_id}",
    auth=_OFFSET_AUTH,
    summary="Get the offset of an upload",
    openapi_extra={"responses": _OFFSET_RESPONSE},
)
def ask_upload(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Returns the upload's state in headers: an interrupted client resumes at `Upload-Offset`."""
    upload = get_object_or_404(visible_uploads(request.user), pk=upload_id)
    upload = services.refreshed(upload)
    headers = {
        "Upload-Offset": str(upload.received),
        "Upload-Length": str(upload.size),
        "Upload-Complete": "?1" if upload.artifact_id else "?0",
        "Cache-Control": "no-store",
    }
    return HttpResponse(content_type="application/json", headers=headers)


@router.patch(
    "/{uuid:upload_id}",
    response=UploadOut,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": _BYTES}}}},
)
def append_to_upload(
    request: HttpRequest,
    upload_id: uuid.UUID,
    offset: str = Header(alias="Upload-Offset", pattern=_OFFSET),
):
    """Appends the body's bytes at `Upload-Offset`, 8 MiB at most unless the server sets another
    limit. 409 with `offset` if the upload is at another offset: resume from there."""
    upload = _mine(request, upload_id)
    return services.described(services.append(upload, int(offset), request))


@router.post("/{uuid:upload_id}/finish", response=UploadOut)
def finish_upload(request: HttpRequest, upload_id: uuid.UUID):
    """Checks and stores the complete upload. 409 with `offset` if bytes are missing."""
    return services.described(services.finish(_mine(request, upload_id)))


@router.delete("/{uuid:upload_id}", response={204: None})
def delete_upload(request: HttpRequest, upload_id: uuid.UUID):
    """Cancels the upload and removes its bytes, unless something else refers to them by now."""
    services.discard_with_artifact(_mine(request, upload_id))
    return Status(204, None)


def _mine(request: HttpRequest, upload_id: uuid.UUID) -> Upload:
    require_scope(request.user, Action.UPLOAD)
    uploads = visible_uploads(request.user).select_related("project", "artifact")
    upload = get_object_or_404(uploads, pk=upload_id)
    if upload.project is not None:  # else it is visible to those who may import it
        require(request.user, Action.UPLOAD, upload.project)
    return upload
