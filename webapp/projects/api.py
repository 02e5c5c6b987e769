"""REST of workspaces and projects."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Router, Schema

from webapp.paging import Cursor, page
from webapp.projects.models import Project, Visibility
from webapp.projects.selectors import visible_projects, visible_workspaces

router = Router()
projects = Router()


class WorkspaceOut(Schema):
    id: int
    name: str
    slug: str
    member_count: int


class ProjectOut(Schema):
    id: int
    name: str
    workspace: int
    visibility: Visibility

    @staticmethod
    def resolve_workspace(project: Project) -> int:
        return project.workspace_id


class WorkspaceList(Schema):
    workspaces: list[WorkspaceOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@router.get("", response=WorkspaceList)
def list_workspaces(request: HttpRequest, query: Query[Cursor]):
    """Workspaces that you are a member of."""
    return page(visible_workspaces(request.user), "workspaces", query)


class ProjectList(Schema):
    projects: list[ProjectOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@projects.get("", response=ProjectList)
def list_projects(request: HttpRequest, query: Query[Cursor]):
    """Projects that you may see; a run is made in one."""
    return page(visible_projects(request.user), "projects", query)
