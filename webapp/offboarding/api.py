"""REST of the export and deletion of a workspace."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.authentication import require_person
from webapp.offboarding import services
from webapp.offboarding.views import sent
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace

router = Router()

Slug = Annotated[str, Path(pattern=r"^[-a-zA-Z0-9_]{1,60}$")]
_ZIP = {
    "description": "OK",
    "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
}


class Typed(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Oaks"}]})

    name: str = Field(min_length=1, max_length=100)
    """As shown on its page."""


@router.get("/{slug}/export", openapi_extra={"responses": {200: _ZIP}})
def export_workspace(request: HttpRequest, slug: Slug):
    """Exports the whole workspace as a zip; for its owners."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.CLOSE, workspace)
    return sent(workspace, request)


@router.post("/{slug}/delete", response={204: None})
def delete_workspace(request: HttpRequest, slug: Slug, typed: Typed):
    """Deletes the workspace of that `name` with all its contents, which must have been exported
    since its last change. Not possible with a token."""
    require_person(request.user)
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.CLOSE, workspace)
    services.delete_workspace(workspace, typed.name)
    return Status(204, None)
