"""REST of a workspace's audit log, for its owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema
from pydantic import AwareDatetime, Field

from webapp.audit.selectors import KINDS, AuditQuery, BadCursor, entries
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace
from webapp.rest.pagination import LARGEST_ID, MOMENT_PATTERN
from webapp.rest.problem_details import Invalid

router = Router()


_CURSOR = rf"^{MOMENT_PATTERN}~[0-9]{{1,3}}~[0-9]{{1,19}}$"


class AuditFilters(Schema):
    person: int | None = Field(None, ge=0, le=LARGEST_ID)
    """Id of the acting user."""
    kind: Literal[KINDS] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    """Not included."""
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
def list_audit_entries(
    request: HttpRequest,
    slug: Annotated[str, Path(pattern=r"^[-a-zA-Z0-9_]{1,60}$")],
    filters: Query[AuditFilters],
):
    """Lists who did what in the workspace, newest first."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.AUDIT, workspace)
    query = AuditQuery(filters.person, filters.kind, filters.since, filters.until)
    try:
        rows, more = entries(workspace, query, filters.cursor, filters.limit)
    except BadCursor:
        raise Invalid("cursor", filters.cursor, "give the `next` of a page", 409) from None
    return {"entries": rows, "next": more}
