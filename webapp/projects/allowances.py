"""Limits on the number of workspaces, projects and events, set by the operator.

Callers hold the lock of the row within which the limit counts, so that two concurrent requests do
not both pass.
"""

from __future__ import annotations

from django.conf import settings

from engine.config.errors import shown
from webapp.accounts.models import User
from webapp.errors import Refused
from webapp.projects.models import Role, Workspace


class AllowanceSpent(Refused):
    """Raised at a limit of the server; names the subject, the count and the remedy."""

    sentence = "The limit of the server is reached."

    def __init__(self, path: str, value: object, reason: str):
        self.problems = [{"path": path, "value": shown(value), "reason": reason}]
        super().__init__(reason)


def refuse_workspace(name: str, owner: User) -> None:
    """Raises `AllowanceSpent` if `owner` owns as many workspaces as one person may."""
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    most = settings.MOST_WORKSPACES
    owned = owner.memberships.filter(role=Role.OWNER).count()
    if owned >= most:
        raise AllowanceSpent("name", name, _reason(f"you own {owned} workspaces", most,
            "delete one that you do not need", "GROVE_MOST_WORKSPACES"))  # fmt: skip


def refuse_project(name: str, workspace: Workspace) -> None:
    """Raises `AllowanceSpent` if the workspace has as many projects as one may."""
    refuse_projects(name, workspace, 1)


def refuse_projects(name: str, workspace: Workspace | None, more: int) -> None:
    """Raises `AllowanceSpent` if `more` projects do not fit into the workspace; None is a new
    one."""
    most = settings.MOST_PROJECTS
    current = workspace.projects.count() if workspace else 0
    if current + more > most:
        held = f"{workspace or 'a new workspace'} has {current} projects"
        what = held if more == 1 else f"{held} and would get {more} more,"
        remedy = "use one of them" if more == 1 else "delete those that it does not need"
        raise AllowanceSpent("name", name, _reason(what, most, remedy, "GROVE_MOST_PROJECTS"))


def refuse_events(path: str, value: object, stored: int, more: int = 1) -> None:
    """Raises `AllowanceSpent` if `more` events do not fit with the `stored` ones of a workspace."""
    most = settings.MOST_EVENTS
    if stored + more > most:
        raise AllowanceSpent(path, value, _reason(f"the workspace's runs have {stored} events",
            most, "delete experiments that it does not need", "GROVE_MOST_EVENTS"))  # fmt: skip


def _reason(current: str, most: int, remedy: str, setting: str) -> str:
    return f"{current} of at most {most}: {remedy}, or have the server's operator raise {setting}"
