"""Making workspaces and projects."""

from __future__ import annotations

from django.db import transaction

from webapp.accounts.models import User
from webapp.projects.models import Membership, Project, Role, Workspace

DEMO = "demo"


@transaction.atomic
def create_workspace(name: str, slug: str, owner: User) -> Workspace:
    """A workspace with its first owner."""
    workspace = Workspace.objects.create(name=name, slug=slug)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    return workspace


def create_project(workspace: Workspace, name: str, slug: str) -> Project:
    return Project.objects.create(workspace=workspace, name=name, slug=slug)


@transaction.atomic
def ensure_demo() -> tuple[User, Project]:
    """The demo user and project, made on first use. The user has no password: only links."""
    user, is_new = User.objects.get_or_create(username=DEMO)
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    workspace = Workspace.objects.filter(slug=DEMO).first() or create_workspace("Demo", DEMO, user)
    project = workspace.projects.filter(slug=DEMO).first()
    return user, project or create_project(workspace, "Demo", DEMO)
