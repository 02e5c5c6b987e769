"""REST of API tokens, for signed-in users: no token creates, sees or revokes tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.authentication import require_person
from webapp.accounts.models import ApiToken, Scope
from webapp.accounts.selectors import valid_tokens
from webapp.accounts.tokens import revoke_token
from webapp.names import required_name
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import grantable_scopes, role_in
from webapp.projects.selectors import visible_projects, visible_workspaces
from webapp.rest.json_types import Integer, integer
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid
from webapp.tokens.services import create_token as make_token

router = Router()

Name = required_name(100)
Id = integer(ge=0, le=LARGEST_ID)


class TokenOut(Schema):
    id: int
    name: str
    prefix: str
    """The beginning of its secret."""
    scopes: list[Scope]
    workspace: int
    project: int | None
    created: datetime
    expires: datetime
    last_used: datetime | None

    @staticmethod
    def resolve_workspace(token: ApiToken) -> int:
        return token.workspace_id

    @staticmethod
    def resolve_project(token: ApiToken) -> int | None:
        return token.project_id


class TokenList(Schema):
    tokens: list[TokenOut]
    next: int | None


class NewToken(Schema):
    """Bound to a workspace, or to a project of one: give one of the two."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "robot", "scopes": ["runs:read"], "workspace": 1, "days": 30}],
            "oneOf": [
                {
                    "properties": {"workspace": {"type": "integer"}, "project": {"type": "null"}},
                    "required": ["workspace"],
                },
                {
                    "properties": {"workspace": {"type": "null"}, "project": {"type": "integer"}},
                    "required": ["project"],
                },
            ],
        },
    )

    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    workspace: Id | None = None
    project: Id | None = None
    days: Integer = Field(30, ge=1, le=365)


class Secret(Schema):
    token: str
    """Shown once; only its digest is stored."""


@router.get("", response=TokenList)
def list_tokens(request: HttpRequest, query: Query[Cursor]):
    """Lists your valid tokens."""
    require_person(request.user)
    return page(valid_tokens(request.user), "tokens", query)


@router.post("", response={201: Secret})
def create_token(request: HttpRequest, new: NewToken):
    """Creates a token that acts for you, and never does more than you may."""
    require_person(request.user)
    resource = _resource(request, new)
    role = role_in(request.user, resource.workspace if isinstance(resource, Project) else resource)
    if beyond := set(new.scopes) - set(grantable_scopes(role) if role else ()):
        names = ", ".join(sorted(beyond))
        raise Invalid("scopes", names, "your role there does not allow it; leave it out")
    lifetime = timedelta(days=new.days)
    return Status(
        201, {"token": make_token(request.user, new.name, new.scopes, resource, lifetime)}
    )


@router.delete("/{token_id}", response={204: None})
def delete_token(request: HttpRequest, token_id: Annotated[int, Path(ge=0, le=LARGEST_ID)]):
    """Revokes the token and closes the connections that it opened."""
    require_person(request.user)
    revoke_token(get_object_or_404(valid_tokens(request.user), pk=token_id))
    return Status(204, None)


def _resource(request: HttpRequest, new: NewToken) -> Workspace | Project:
    if (new.workspace is None) == (new.project is None):
        raise Invalid("workspace", new.workspace, "give either it or `project`")
    if new.project is None:
        return get_object_or_404(visible_workspaces(request.user), pk=new.workspace)
    return get_object_or_404(visible_projects(request.user), pk=new.project)
