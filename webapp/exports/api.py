"""REST of exports: requesting one, polling it, downloading its file."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from engine.events.vocabulary import RunState
from webapp.experiments.runs_list.listing import LONGEST, ORDERS, InvalidQuery, RunQuery
from webapp.experiments.selectors import visible_run
from webapp.exports import selectors, services
from webapp.exports.models import Export, ExportState, Format, Table
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_projects
from webapp.rest.json_types import Flag, integer
from webapp.rest.pagination import LARGEST_ID, MOMENT_PATTERN, UUID_PATTERN
from webapp.rest.problem_details import Invalid, problem

router = Router()
_WITHOUT_NUL = r"^[^\x00]*$"


class RunFilters(Schema):
    """As in the list of runs."""

    model_config = ConfigDict(extra="forbid")

    state: RunState | None = None
    q: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    tag: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    name: str = Field("", max_length=LONGEST, pattern=_WITHOUT_NUL)
    created_by: str = Field("", max_length=150, pattern=_WITHOUT_NUL)
    starred: Flag = False
    archived: Flag = False
    sort: str = Field("-created", max_length=20, json_schema_extra={"enum": list(ORDERS)})


class NewExport(Schema):
    """An export of one run, or of a project's runs that match the filters: give one of the two."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "table": "runs",
                    "format": "csv",
                    "filters": {"state": "finished", "tag": "baseline"},
                }
            ],
            "oneOf": [
                {
                    "properties": {"project": {"type": "integer"}, "run": {"type": "null"}},
                    "required": ["project"],
                },
                {
                    "properties": {
                        "project": {"type": "null"},
                        "run": {"type": "string"},
                        "filters": {"maxProperties": 0},
                    },
                    "required": ["run"],
                },
            ],
        },
    )

    project: integer(ge=0, le=LARGEST_ID) | None = None
    run: uuid.UUID | None = None
    table: Table = Table.RUNS
    format: Format = Format.CSV
    filters: RunFilters = RunFilters()


class ExportOut(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77",
                    "project": 1,
                    "run": None,
                    "table": "runs",
                    "format": "csv",
                    "filters": {"state": "finished"},
                    "created": "2026-11-22T10:00:00Z",
                    "created_by": "alice",
                    "state": "ready",
                    "deadline": None,
                    "finished": "2026-11-22T10:00:02Z",
                    "expires": "2026-11-29T10:00:02Z",
                    "error": "",
                    "rows": 12,
                    "size": 4096,
                    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                }
            ]
        }
    )

    id: uuid.UUID
    project: int
    run: uuid.UUID | None
    table: Table
    format: Format
    filters: dict[str, str | bool]
    created: datetime
    created_by: str
    state: ExportState
    deadline: datetime | None
    """When writing it is abandoned, while it is in progress."""
    finished: datetime | None
    expires: datetime | None
    """When it is removed."""
    error: str
    rows: int
    size: int
    """Bytes."""
    sha256: str

    @staticmethod
    def resolve_project(export: Export) -> int:
        return export.project_id

    @staticmethod
    def resolve_run(export: Export) -> uuid.UUID | None:
        return export.run_id

    @staticmethod
    def resolve_created_by(export: Export) -> str:
        return export.created_by.username


class ExportList(Schema):
    exports: list[ExportOut]
    next: str | None
    """Cursor of the next page, null on the last."""


class ExportFilters(Schema):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    state: ExportState | None = None
    cursor: str | None = Field(None, max_length=100, pattern=f"^{MOMENT_PATTERN}_{UUID_PATTERN}$")
    """`next` of the previous page."""
    limit: int = Field(50, ge=1, le=200)


@router.get("", response=ExportList)
def list_exports(request: HttpRequest, query: Query[ExportFilters]):
    """Lists exports of the projects that you may see, newest first."""
    try:
        rows, following = selectors.exports_page(request.user, **query.dict())
    except ValueError:
        reason = "give the `next` of an earlier page of the same list, or none"
        raise Invalid("cursor", query.cursor, reason, 409) from None
    return {"exports": rows, "next": following}


@router.post("", response={201: ExportOut})
def create_export(request: HttpRequest, new: NewExport):
    """Requests a table as a file. A worker writes it: poll the export until its `state` is `ready`,
    then download its file."""
    if (new.run is None) == (new.project is None):
        raise Invalid("project", new.project, "give either it or `run`")
    run = visible_run(request.user, new.run) if new.run else None
    project = run.project if run else get_object_or_404(
        visible_projects(request.user), pk=new.project
    )  # fmt: skip
    require(request.user, Action.READ, project)
    try:
        run_query = _run_query(new)
        made = services.request_export(project, request.user, new.table, new.format, run_query, run)
    except services.TooManyExports as error:
        return problem(409, f"{error}.")
    return Status(201, made)


def _run_query(new: NewExport) -> RunQuery:
    if new.run and (given := new.filters.dict(exclude_unset=True)):
        raise Invalid(
            "filters", ", ".join(given), "they select among the runs of a project; leave them out"
        )
    filters = new.filters.dict(exclude_defaults=True)
    try:
        return RunQuery(**filters)
    except InvalidQuery as error:
        raise Invalid(f"filters.{error.path}", error.value, error.reason) from None


@router.get("/{uuid:export_id}", response=ExportOut)
def get_export(request: HttpRequest, export_id: uuid.UUID):
    """Returns the export with its state."""
    return selectors.visible_export(request.user, export_id)


_FILE = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/{uuid:export_id}/file",
    openapi_extra={
        "responses": {
            200: {"content": {one.media_type: _FILE for one in Format}},
            409: {"description": "The file is not ready, or the export failed"},
        }
    },
)
def get_export_file(request: HttpRequest, export_id: uuid.UUID) -> HttpResponse:
    """Returns the export's file; 409 with the reason while there is none."""
    export = selectors.visible_export(request.user, export_id)
    if reason := selectors.unavailable_reason(export):
        return problem(409, reason)
    headers = {
        "Content-Disposition": f'attachment; filename="{export.file_name}"',
        "Content-Length": str(export.size),
        "ETag": f'"{export.sha256}"',
    }
    media = Format(export.format).media_type
    return StreamingHttpResponse(selectors.content(export), content_type=media, headers=headers)


@router.delete("/{uuid:export_id}", response={204: None})
def delete_export(request: HttpRequest, export_id: uuid.UUID):
    """Deletes the export and its file; discards one that is being written."""
    services.remove(services.removable(request.user, export_id))
    return Status(204, None)
