"""REST of a workspace's audit log, for its owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Path, Query, Router, Schema
from pydantic import AwareDatetime, Field

from webapp.audit.files import sent
from webapp.audit.selectors import KINDS, AuditQuery, BadCursor, entries
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace
from webapp.rest.pagination import LARGEST_ID, MOMENT_PATTERN
from webapp.rest.problem_details import Invalid

router = Router()

Slug = Annotated[str, Path(pattern=r"^[-a-zA-Z0-9_]{1,60}$")]
_CSV = {"description": "OK", "content": {"text/csv": {"schema": {"type": "string"}}}}
_CURSOR = rf"^{MOMENT_PATTERN}~[0-9]{{1,3}}~[0-9]{{1,19}}$"


class FileFilters(Schema):
    person: int | None = Field(None, ge=0, le=LARGEST_ID)
    """Id of the acting user."""
    kind: Literal[KINDS] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    """Not included."""

    def query(self) -> AuditQuery:
        return AuditQuery(self.person, self.kind, self.since, self.until)


class AuditFilters(FileFilters):
    cursor: str | None = Field(None, max_length=100, pattern=_CURSOR)
    """`next` of the previous page."""
    limit: int = Field(50, ge=1, le=200)


class EntryOut(Schema):
    at: datetime
    kind: str
    person: int | None
    """Id of the acting user; null is a worker, or a command on the server."""
    text: str
    token: str | None
    """Name of the API token that was used."""
    method: str | None
    route: str | None
    """Of the request, with placeholders for the names in its path."""
    address: str | None
    """IP address of the request."""


class EntryList(Schema):
    entries: list[EntryOut]
    next: str | None
    """Cursor of the next page, null on the last."""


@router.get("/{slug}/audit", response=EntryList)
def list_audit_entries(request: HttpRequest, slug: Slug, filters: Query[AuditFilters]):
    """Lists who did what in the workspace, newest first."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.AUDIT, workspace)
    try:
        rows, more = entries(workspace, filters.query(), filters.cursor, filters.limit)
    except BadCursor:
        raise Invalid("cursor", filters.cursor, "give the `next` of a page", 409) from None
    return {"entries": rows, "next": more}


@router.get("/{slug}/audit/file", openapi_extra={"responses": {200: _CSV}})
def get_audit_file(
    request: HttpRequest, slug: Slug, filters: Query[FileFilters]
) -> HttpResponseBase:
    """Returns who did what in the workspace as one CSV file, newest first."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.AUDIT, workspace)
    return sent(request, workspace, filters.query())
