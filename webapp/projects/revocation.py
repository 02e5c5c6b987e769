"""Revocation at a loss of rights in a workspace: of what users created and may no longer create.

Each app revokes its own objects, as a receiver of `access_changed`, in the transaction of the
change: its audit records share that change's transaction and author.
"""

from __future__ import annotations

from django.db.models import Q
from django.dispatch import Signal
from django.utils import timezone

from webapp.accounts.models import ApiToken
from webapp.accounts.services import announce_access
from webapp.projects.models import GIVEN_BY_LINK, Role, Workspace
from webapp.projects.permissions import grantable_scopes

access_changed = Signal()
"""Sent by a `Workspace` with `user_ids`: these people's rights there may be fewer than before."""


def revoke_beyond_role(workspace: Workspace, *user_ids: int) -> None:
    """Revokes what these people created in the workspace and their roles there no longer allow:
    tokens, invitations and the objects of the receivers of `access_changed`. Their open sockets are
    checked again.
    """
    roles = dict(workspace.memberships.filter(user__in=user_ids).values_list("user", "role"))
    for user_id in user_ids:
        role = Role(roles[user_id]) if user_id in roles else None
        _revoke_tokens(workspace, user_id, role)
        _revoke_invitations(workspace, user_id, role)
    access_changed.send(sender=Workspace, workspace=workspace, user_ids=user_ids)
    announce_access(*user_ids)


def _revoke_tokens(workspace: Workspace, user_id: int, role: Role | None) -> None:
    tokens = ApiToken.objects.filter(workspace=workspace, user=user_id, revoked_at=None)
    if role is not None:
        tokens = tokens.exclude(scopes__contained_by=[one.value for one in grantable_scopes(role)])
    tokens.update(revoked_at=timezone.now())


def _revoke_invitations(workspace: Workspace, user_id: int, role: Role | None) -> None:
    still_allowed = Q(role__in=GIVEN_BY_LINK.get(role, ()))
    made = workspace.invitations.unspent().filter(created_by=user_id).exclude(still_allowed)
    made.update(revoked_at=timezone.now())
