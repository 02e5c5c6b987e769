"""REST of imports of uploaded zips, which a worker does: requesting one, polling it."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.authentication import require_person
from webapp.artifacts.selectors import visible_uploads
from webapp.offboarding.imports import states
from webapp.offboarding.imports.requests import request_import, requests_page, visible_request
from webapp.offboarding.models import ImportRequest, WorkspaceImportState
from webapp.projects.permissions import Action, require, require_scope
from webapp.projects.selectors import visible_workspace
from webapp.rest.json_types import Flag
from webapp.rest.pagination import LARGEST_ID, Cursor
from webapp.rest.problem_details import Invalid

router = Router()
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]


class NewWorkspaceImport(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"upload": "5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77", "into": "oaks"}],
            "oneOf": [
                {
                    "properties": {"into": {"type": "string"}, "name": {"maxLength": 0}},
                    "required": ["into"],
                },
                {"properties": {"into": {"type": "null"}}},
            ],
        },
    )

    upload: uuid.UUID
    """Finished upload of the kind workspace: a zip that *Export everything* made."""
    into: str | None = Field(None, pattern=r"^[-a-zA-Z0-9_]{1,60}$")
    """Slug of a workspace that you own; left out: a new one."""
    name: str = Field("", max_length=100, pattern=r"^[^\x00-\x1f]*$")
    """Name of the new workspace; empty: as the exported one."""
    confirmed: Flag = False
    """Whether to import it as soon as its check has found no fault, without waiting for you."""


class IncludedOut(Schema):
    what: str
    count: int
    note: str
    """In which way they differ from the exported ones; empty if they do not."""


class LeftOutOut(Schema):
    what: str
    count: int | None
    """Null where an export never has any."""
    reason: str


class WorkspaceCheckOut(Schema):
    """What a check has found. Nothing is created before the import is confirmed."""

    source: str
    """Name of the exported workspace."""
    grove: str
    """Version of Grove that made the export; empty if the file does not say."""
    size: int
    """Unpacked bytes."""
    included: list[IncludedOut]
    left_out: list[LeftOutOut]


class WorkspaceImportOut(Schema):
    id: int
    file: str
    """Name of the uploaded file."""
    into: str | None
    """Slug of the workspace that it is imported into; null for a new one."""
    name: str
    """Name that was given for a new workspace."""
    state: WorkspaceImportState
    progress: float
    """From 0 to 1."""
    phase: str
    error: str
    """First cause of a failure."""
    check: WorkspaceCheckOut | None
    """Null until it was checked."""
    can_confirm: bool
    can_retry: bool
    workspace: str | None
    """Slug of the workspace that has it, once it is done."""
    created: datetime
    started: datetime | None
    finished: datetime | None
    deadline: datetime | None
    """When it is abandoned, while it is running."""

    @staticmethod
    def resolve_into(one: ImportRequest) -> str | None:
        return one.into.slug if one.into else None

    @staticmethod
    def resolve_check(one: ImportRequest) -> dict[str, Any] | None:
        return one.summary

    @staticmethod
    def resolve_workspace(one: ImportRequest) -> str | None:
        return one.result.workspace.slug if one.result else None


class WorkspaceImportList(Schema):
    imports: list[WorkspaceImportOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class WorkspaceImportFilters(Cursor):
    state: WorkspaceImportState | None = None


@router.post("", response={202: WorkspaceImportOut})
def create_workspace_import(request: HttpRequest, new: NewWorkspaceImport):
    """Queues the check, by a worker, of the zip of a workspace, to be imported into one that you
    own, or into a new one of yours, which a token cannot make. Poll it until its `state` is
    `checked`; `check` has what comes in and what is left out. Nothing is created before you confirm
    it. Then everything is imported, in your name, or nothing."""
    require_scope(request.user, Action.IMPORT)
    into = None
    if new.into is None:
        require_person(request.user)
    else:
        into = visible_workspace(request.user, new.into)
        require(request.user, Action.IMPORT, into)
    upload = visible_uploads(request.user).filter(pk=new.upload).first()
    if upload is None:
        reason = "you have no such upload; it may have been used or be older than a day"
        raise Invalid("upload", str(new.upload), reason, 409)
    one = request_import(upload, request.user, into, new.name, is_confirmed=new.confirmed)
    return Status(202, visible_request(request.user, one.pk))


@router.get("", response=WorkspaceImportList)
def list_workspace_imports(request: HttpRequest, query: Query[WorkspaceImportFilters]):
    """Lists your imports, newest first."""
    rows, following = requests_page(request.user, query.state, query.cursor, query.limit)
    return {"imports": rows, "next": following}


@router.get("/{int:workspace_import_id}", response=WorkspaceImportOut)
def get_workspace_import(request: HttpRequest, workspace_import_id: Id):
    """Returns an import of yours with its progress, and the workspace that has it."""
    return visible_request(request.user, workspace_import_id)


@router.post("/{int:workspace_import_id}/confirm", response={202: WorkspaceImportOut})
def confirm_workspace_import(request: HttpRequest, workspace_import_id: Id):
    """Queues the import of a zip that was checked. Poll it until its `state` is `done`, `failed` or
    `cancelled`. 409 if it does not wait for it, or its file was discarded, which is after a day."""
    states.confirm(changeable(request, workspace_import_id))
    return Status(202, visible_request(request.user, workspace_import_id))


@router.post("/{int:workspace_import_id}/cancel", response=WorkspaceImportOut)
def cancel_workspace_import(request: HttpRequest, workspace_import_id: Id):
    """Cancels an import that is queued or running, or waits for you; one that has ended is
    unchanged."""
    states.cancel(changeable(request, workspace_import_id), request.user)
    return visible_request(request.user, workspace_import_id)


@router.post("/{int:workspace_import_id}/retry", response={202: WorkspaceImportOut})
def retry_workspace_import(request: HttpRequest, workspace_import_id: Id):
    """Queues a failed or cancelled import again. The file of an import of yesterday, or of one that
    was refused, is discarded (409): upload it again."""
    states.retry(changeable(request, workspace_import_id))
    return Status(202, visible_request(request.user, workspace_import_id))


def changeable(request: HttpRequest, request_id: int) -> ImportRequest:
    """Returns an import of the user, who may still import into its workspace."""
    require_scope(request.user, Action.IMPORT)
    one = visible_request(request.user, request_id)
    if one.into is not None:
        require(request.user, Action.IMPORT, one.into)
    return one
