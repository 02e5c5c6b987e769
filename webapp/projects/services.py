"""Creation of workspaces and projects."""

from __future__ import annotations

import secrets

from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.text import slugify

from webapp.accounts.models import User
from webapp.projects.allowances import refuse_project, refuse_workspace
from webapp.projects.models import Membership, Project, Role, Visibility, Workspace
from webapp.projects.revocation import revoke_beyond_role

DEMO = "demo"


@transaction.atomic
def create_workspace(name: str, slug: str, owner: User) -> Workspace:
    """Creates a workspace with its first owner."""
    workspace = Workspace.objects.create(name=name, slug=slug)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    return workspace


def create_project(
    workspace: Workspace,
    name: str,
    slug: str,
    visibility: Visibility = Visibility.WORKSPACE,
    created_by: User | None = None,
) -> Project:
    return Project.objects.create(
        workspace=workspace, name=name, slug=slug, visibility=visibility, created_by=created_by
    )


@transaction.atomic
def open_workspace(name: str, owner: User) -> Workspace:
    """Creates a workspace of that name with a first project.

    Raises:
        AllowanceSpent: `owner` has as many as one may.
    """
    workspace = add_workspace(name, owner)
    create_project(workspace, "First project", "first-project", created_by=owner)
    return workspace


@transaction.atomic
def add_workspace(name: str, owner: User) -> Workspace:
    """Creates an empty workspace of that name. Raises as `open_workspace`."""
    refuse_workspace(name, owner)
    # A random end of the slug: a number would reveal that others have a workspace of that name.
    slug = f"{slugify(name)[:50] or 'workspace'}-{secrets.token_hex(4)}"
    return create_workspace(name, slug, owner)


@transaction.atomic
def add_project(workspace: Workspace, name: str, visibility: Visibility, user: User) -> Project:
    """Creates a project of that name; its slug is the name's, made unique in the workspace.

    Raises:
        AllowanceSpent: the workspace has as many as it may.
    """
    _locked(workspace)
    refuse_project(name, workspace)
    taken = set(workspace.projects.values_list("slug", flat=True))
    return create_project(workspace, name, _free_slug(name, taken), visibility, user)


@transaction.atomic
def change_visibility(project: Project, visibility: Visibility) -> None:
    """Changes who sees the project; disconnects users who may no longer see it, revokes their
    links."""
    project.visibility = visibility
    project.save(update_fields=["visibility"])
    members = project.workspace.memberships.values_list("user", flat=True)
    revoke_beyond_role(project.workspace, *members)


@receiver(user_logged_in)
def ensure_workspace(
    sender: type[User], request: HttpRequest | None, user: User, **kwargs: object
) -> None:
    """Creates a workspace for a user who signs in and belongs to none."""
    if not user.memberships.exists():
        open_workspace(f"Workspace of {user.username}"[:100], user)


@transaction.atomic
def ensure_demo() -> tuple[User, Project]:
    """Returns the demo user and project, created on first use. The user has no password: only
    links."""
    user, is_new = User.objects.get_or_create(username=DEMO)
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    workspace = Workspace.objects.filter(slug=DEMO).first() or create_workspace("Demo", DEMO, user)
    project = workspace.projects.filter(slug=DEMO).first()
    return user, project or create_project(workspace, "Demo", DEMO, created_by=user)


def _locked(workspace: Workspace) -> Workspace:
    return Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def _free_slug(name: str, taken: set[str]) -> str:
    stem = slugify(name)[:50] or "project"
    numbered = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (stem, *numbered) if slug not in taken)
