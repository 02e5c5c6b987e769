"""REST of workspaces, their members and projects."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.authentication import require_person
from webapp.names import required_name
from webapp.projects import membership, services
from webapp.projects.models import Invitation, Membership, Project, Role, Visibility
from webapp.projects.permissions import Action, givable_roles, require, require_scope
from webapp.projects.selectors import visible_projects, visible_workspace, visible_workspaces
from webapp.rest.json_types import Flag
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid

router = Router()
projects = Router()
invitations = Router()

Slug = Annotated[str, Path(pattern=r"^[-a-zA-Z0-9_]{1,60}$")]
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
Name = required_name(100)


class WorkspaceOut(Schema):
    id: int
    name: str
    slug: str
    member_count: int


class NewWorkspace(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Oaks"}]})

    name: Name


class ProjectOut(Schema):
    id: int
    name: str
    workspace: int
    visibility: Visibility

    @staticmethod
    def resolve_workspace(project: Project) -> int:
        return project.workspace_id


class NewProject(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "Shade", "visibility": "workspace"}]},
    )

    name: Name
    visibility: Visibility = Visibility.WORKSPACE


class ProjectChange(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"visibility": "private"}]}
    )

    visibility: Visibility


class MemberOut(Schema):
    id: int
    """Id of the user, not of the membership."""
    name: str
    role: Role

    @staticmethod
    def resolve_id(member: Membership) -> int:
        return member.user_id

    @staticmethod
    def resolve_name(member: Membership) -> str:
        return member.user.username


class RoleChange(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "viewer"}]})

    role: Role


class InvitationOut(Schema):
    id: int
    role: Role
    single_use: bool
    uses: int
    created_by: str
    created: datetime
    expires: datetime

    @staticmethod
    def resolve_created_by(invitation: Invitation) -> str:
        return invitation.created_by.username


class NewInvitation(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"role": "member", "single_use": True}]}
    )

    role: Role
    single_use: Flag = True


class Invited(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"token": "the-last-part-of-the-link"}]},  # nosec B105
    )

    token: str = Field(min_length=1, max_length=200, pattern=r"^[-\w]+$")
    """The last part of the link."""


class Link(Schema):
    link: str
    """Admits a new member; shown once."""


class WorkspaceList(Schema):
    workspaces: list[WorkspaceOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class MemberList(Schema):
    members: list[MemberOut]
    next: int | None


class InvitationList(Schema):
    invitations: list[InvitationOut]
    next: int | None


class ProjectList(Schema):
    projects: list[ProjectOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@router.get("", response=WorkspaceList)
def list_workspaces(request: HttpRequest, query: Query[Cursor]):
    """Lists the workspaces that you are a member of."""
    return page(visible_workspaces(request.user), "workspaces", query)


@router.post("", response={201: WorkspaceOut})
def create_workspace(request: HttpRequest, new: NewWorkspace):
    """Creates a workspace of your own, with a first project. Not possible with a token, which is
    bound to one workspace."""
    require_person(request.user)
    made = services.open_workspace(new.name, request.user)
    return Status(201, visible_workspaces(request.user).get(pk=made.pk))


@router.get("/{slug}", response=WorkspaceOut)
def get_workspace(request: HttpRequest, slug: Slug):
    return get_object_or_404(visible_workspaces(request.user), slug=slug)


@router.get("/{slug}/members", response=MemberList)
def list_members(request: HttpRequest, slug: Slug, query: Query[Cursor]):
    """Lists the members and their roles."""
    workspace = visible_workspace(request.user, slug)
    return page(workspace.memberships.select_related("user"), "members", query)


@router.patch("/{slug}/members/{user_id}", response=MemberOut)
def change_member(request: HttpRequest, slug: Slug, user_id: Id, change: RoleChange):
    """Changes a member's role, within the limits of your own."""
    workspace = visible_workspace(request.user, slug)
    get_object_or_404(workspace.memberships, user=user_id)
    membership.change_role(workspace, user_id, change.role, request.user)
    return workspace.memberships.select_related("user").get(user=user_id)


@router.delete("/{slug}/members/{user_id}", response={204: None})
def delete_member(request: HttpRequest, slug: Slug, user_id: Id):
    """Removes a member, or yourself. Their open pages close at once."""
    workspace = visible_workspace(request.user, slug)
    get_object_or_404(workspace.memberships, user=user_id)
    require_scope(request.user, Action.MANAGE_MEMBERS)
    if user_id == request.user.pk:
        membership.leave(workspace, request.user)
    else:
        membership.remove_member(workspace, user_id, request.user)
    return Status(204, None)


@router.post("/{slug}/members/{user_id}/transfer", response=MemberOut)
def transfer_workspace(request: HttpRequest, slug: Slug, user_id: Id):
    """Makes the member the owner; you remain as a maintainer."""
    workspace = visible_workspace(request.user, slug)
    get_object_or_404(workspace.memberships, user=user_id)
    membership.transfer(workspace, request.user, user_id)
    return workspace.memberships.select_related("user").get(user=user_id)


@router.get("/{slug}/invitations", response=InvitationList)
def list_invitations(request: HttpRequest, slug: Slug, query: Query[Cursor]):
    """Lists valid invitation links; for users who may create them."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.MANAGE_MEMBERS, workspace)
    links = Invitation.objects.visible_to(request.user).open().filter(workspace=workspace)
    return page(links.select_related("created_by"), "invitations", query)


@router.post("/{slug}/invitations", response={201: Link})
def create_invitation(request: HttpRequest, slug: Slug, new: NewInvitation):
    """Creates a link that admits a new member, for seven days. Links do not make owners; promote a
    member instead."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.MANAGE_MEMBERS, workspace)
    givable = [one for one in givable_roles(request.user, workspace) if one is not Role.OWNER]
    if new.role not in givable:
        raise Invalid("role", new.role, f"by a link you can give {', '.join(givable)}")
    path = membership.invite(workspace, request.user, new.role, new.single_use)
    return Status(201, {"link": request.build_absolute_uri(path)})


@invitations.post("/accept", response=WorkspaceOut)
def accept_invitation(request: HttpRequest, invited: Invited):
    """Makes you a member of the link's workspace. Not possible with a token."""
    require_person(request.user)
    try:
        joined = membership.accept_invitation(invited.token, request.user)
    except membership.InvitationRefused:
        reason = (
            "its link is used up, revoked, older than seven days, or you left the workspace since "
            "it was created: ask for a new one"
        )
        raise Invalid("token", "...", reason, 404) from None
    return visible_workspaces(request.user).get(pk=joined.pk)


@router.delete("/{slug}/invitations/{invitation_id}", response={204: None})
def delete_invitation(request: HttpRequest, slug: Slug, invitation_id: Id):
    """Revokes the link: it admits nobody any more."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.MANAGE_MEMBERS, workspace)
    links = Invitation.objects.visible_to(request.user).filter(workspace=workspace)
    membership.revoke_invitation(get_object_or_404(links, pk=invitation_id))
    return Status(204, None)


@router.post("/{slug}/projects", response={201: ProjectOut})
def create_project(request: HttpRequest, slug: Slug, new: NewProject):
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.ADD_PROJECT, workspace)
    return Status(201, services.add_project(workspace, new.name, new.visibility, request.user))


@projects.get("", response=ProjectList)
def list_projects(request: HttpRequest, query: Query[Cursor]):
    """Lists projects that you may see; a run is created in one."""
    return page(visible_projects(request.user), "projects", query)


@projects.get("/{project_id}", response=ProjectOut)
def get_project(request: HttpRequest, project_id: Id):
    return get_object_or_404(visible_projects(request.user), pk=project_id)


@projects.patch("/{project_id}", response=ProjectOut)
def change_project(request: HttpRequest, project_id: Id, change: ProjectChange):
    """Changes who in the workspace sees it."""
    project = get_object_or_404(visible_projects(request.user), pk=project_id)
    require(request.user, Action.SHARE_PROJECT, project)
    services.change_visibility(project, change.visibility)
    return project
