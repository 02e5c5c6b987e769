"""REST of workspaces and projects."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Schema

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


@router.get("", response=list[WorkspaceOut])
def list_workspaces(request: HttpRequest):
    """Workspaces that you are a member of, by name."""
    return visible_workspaces(request.user)


@projects.get("", response=list[ProjectOut])
def list_projects(request: HttpRequest):
    """Projects that you may see, by name; a run is made in one."""
    return visible_projects(request.user)
