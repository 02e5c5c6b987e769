"""Reads of workspaces: what a person sees starts with `visible_to`."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.projects.models import Invitation, Membership, Project, Role, Workspace
from webapp.projects.permissions import givable_roles, role_in


def visible_workspaces(user: User) -> QuerySet[Workspace]:
    """The user's workspaces by name, each with `member_count`."""
    # Counted separately: `visible_to` joins the memberships of `user` alone.
    mine = Workspace.objects.visible_to(user).values("pk")
    return (
        Workspace.objects.filter(pk__in=mine)
        .annotate(member_count=Count("memberships"))
        .order_by("name", "pk")
    )


def visible_workspace(user: User, slug: str) -> Workspace:
    """Returns the workspace; raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(Workspace.objects.visible_to(user), slug=slug)


def ids_visible_to(user: User) -> list[int]:
    """Ids of the projects that `user` sees."""
    return list(Project.objects.visible_to(user).values_list("pk", flat=True))


def visible_projects(user: User) -> QuerySet[Project]:
    """Projects that `user` sees, by name."""
    return Project.objects.visible_to(user).select_related("workspace").order_by("name", "pk")


@dataclass(frozen=True, slots=True)
class Member:
    membership: Membership
    can_manage: bool
    """Whether the viewer may change this member's role or remove them."""


@dataclass(frozen=True, slots=True)
class Team:
    """The data of a workspace's page for `user`."""

    workspace: Workspace
    role: Role
    members: list[Member]
    projects: list[Project]
    invitations: list[Invitation]
    givable: list[Role]


def team(user: User, workspace: Workspace) -> Team:
    givable = givable_roles(user, workspace)
    memberships = (
        workspace.memberships.visible_to(user).select_related("user").order_by("user__username")
    )
    invitations = Invitation.objects.visible_to(user).open().filter(workspace=workspace)
    return Team(
        workspace=workspace,
        role=role_in(user, workspace),
        members=[
            Member(one, one.user_id != user.pk and one.role in givable) for one in memberships
        ],
        projects=list(visible_projects(user).filter(workspace=workspace)),
        invitations=list(invitations.select_related("created_by").order_by("-created")),
        givable=givable,
    )
