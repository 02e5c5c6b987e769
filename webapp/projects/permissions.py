"""Who may do what with an object: the one place that pages, REST and websockets ask.

Invariant: whoever may not see an object is told that it does not exist (404); whoever may see
it but not do this is told so (403). Seeing is `visible_to` of the querysets (`projects.models`).
"""

from __future__ import annotations

from enum import StrEnum

from django.core.exceptions import PermissionDenied

from webapp.accounts.models import User
from webapp.projects.models import Membership, Project, Role


class Action(StrEnum):
    OPERATE = "operate"
    """Start, stop and resume runs."""


_ROLES: dict[Action, frozenset[Role]] = {
    Action.OPERATE: frozenset({Role.OWNER, Role.MAINTAINER, Role.MEMBER}),
}
_WORDS: dict[Action, str] = {Action.OPERATE: "start, stop or resume runs"}


def may(user: User, action: Action, project: Project) -> bool:
    """Whether the role of `user` in the project's workspace allows `action`."""
    return (
        user.is_active
        and Membership.objects.filter(
            workspace=project.workspace_id, user=user.pk, role__in=_ROLES[action]
        ).exists()
    )


def require(user: User, action: Action, project: Project) -> None:
    """Raises `PermissionDenied` unless `may`."""
    if not may(user, action, project):
        raise PermissionDenied(
            f"Your role in {project.workspace} does not let you {_WORDS[action]}; ask an owner."
        )


def operable_projects(user: User) -> list[Project]:
    """Projects in which `user` may start runs, by name."""
    mine = Membership.objects.filter(user=user.pk, role__in=_ROLES[Action.OPERATE])
    return list(
        Project.objects.visible_to(user)
        .filter(workspace__in=mine.values("workspace"))
        .select_related("workspace")
        .order_by("name")
    )
