"""Membership of workspaces: inviting, joining, roles, leaving, removal, transfer.

Invariants: a workspace has at least one owner, whatever two people do concurrently. Its row is
locked first, and only then is the right of `by` checked, so that nobody acts by a role that was
just withdrawn. Removal and demotion revoke in the same transaction what the member created and may
no longer create (`projects.revocation`), and close their open sockets. No link from before admits a
user who left or was removed.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Func, Value
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.errors import Refused
from webapp.projects.models import Invitation, Membership, Role, Workspace
from webapp.projects.permissions import Action, givable_roles, require, require_over
from webapp.projects.revocation import revoke_beyond_role

LIFETIME = timedelta(days=7)


class InvitationRefused(Exception):
    """Raised for a link that is unknown, spent, revoked or too old; does not say which."""


class MembershipRefused(Refused):
    """Raised for what would leave a workspace without an owner, or concerns a non-member."""


@transaction.atomic
def invite(workspace: Workspace, user: User, role: Role, single_use: bool) -> str:
    """Returns the path of a new link that makes the user who opens it a member, for seven days.

    It is shown once: only its digest is stored.

    Raises:
        PermissionDenied: `user` may not give that role by a link.
    """
    _lock(workspace)
    if role is Role.OWNER or role not in givable_roles(user, workspace):
        raise PermissionDenied(
            f"Your role in {workspace} does not allow you to invite a {role.value}."
        )
    token = secrets.token_urlsafe(32)
    Invitation.objects.create(
        workspace=workspace,
        role=role,
        digest=_digest(token),
        single_use=single_use,
        created_by=user,
        expires=timezone.now() + LIFETIME,
    )
    return reverse("invitation", args=[token])


def revoke_invitation(invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now())


def find_invitation(token: str, user: User | None = None) -> Invitation:
    """Returns the invitation of a link; `user` is who opens it, if that is known.

    Raises:
        InvitationRefused: the link admits nobody, or not `user`, who left since it was created.
    """
    open_invitations = Invitation.objects.open().select_related("workspace", "created_by")
    invitation = open_invitations.filter(digest=_digest(token)).first()
    if invitation is None or (user is not None and user.pk in invitation.barred):
        raise InvitationRefused
    return invitation


@transaction.atomic
def accept_invitation(token: str, user: User) -> Workspace:
    """Makes `user` a member. For a member nothing changes, and the link is not spent.

    Raises:
        InvitationRefused: the link admits nobody, or not `user`, who left since it was created.
    """
    workspace = find_invitation(token, user).workspace
    _lock(workspace)
    invitation = find_invitation(token, user)  # as it is under the lock
    _, is_new = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": invitation.role}
    )
    if is_new:
        Invitation.objects.filter(pk=invitation.pk).update(uses=F("uses") + 1)
    return workspace


@transaction.atomic
def change_role(workspace: Workspace, user_id: int, role: Role, by: User) -> None:
    """Changes a member's role.

    Raises:
        PermissionDenied: `by` may not take the old role or give the new one.
        MembershipRefused: the last owner would lose that role.
    """
    member = _member(workspace, user_id)
    require_over(by, workspace, Role(member.role), role)
    _set_role(workspace, member, role)


@transaction.atomic
def remove_member(workspace: Workspace, user_id: int, by: User) -> None:
    """Removes a member and closes their open sockets at once.

    Raises:
        PermissionDenied: `by` may not remove a member of that role.
        MembershipRefused: the user is the last owner, or not a member.
    """
    member = _member(workspace, user_id)
    require_over(by, workspace, Role(member.role))
    _end(workspace, member)


@transaction.atomic
def leave(workspace: Workspace, user: User) -> None:
    """Ends the user's membership. Raises `MembershipRefused` for the last owner."""
    _end(workspace, _member(workspace, user.pk))


@transaction.atomic
def transfer(workspace: Workspace, owner: User, user_id: int) -> None:
    """Makes the member an owner, and `owner` a maintainer.

    Raises:
        PermissionDenied: `owner` is not an owner.
        MembershipRefused: the user is not a member, or is `owner`.
    """
    member = _member(workspace, user_id)
    require(owner, Action.TRANSFER, workspace)
    if owner.pk == user_id:
        raise MembershipRefused("You already own it; choose another member.")
    _set_role(workspace, member, Role.OWNER)
    _set_role(workspace, _member(workspace, owner.pk), Role.MAINTAINER)


def _end(workspace: Workspace, member: Membership) -> None:
    _require_another_owner(workspace, member)
    member.delete()
    barred = Func(F("barred"), Value(member.user_id), function="array_append")
    workspace.invitations.filter(expires__gt=timezone.now()).update(barred=barred)
    revoke_beyond_role(workspace, member.user_id)


def _set_role(workspace: Workspace, member: Membership, role: Role) -> None:
    if role is not Role.OWNER:
        _require_another_owner(workspace, member)
    member.role = role
    member.save(update_fields=["role"])
    revoke_beyond_role(workspace, member.user_id)


def _lock(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def _member(workspace: Workspace, user_id: int) -> Membership:
    """The current membership; the workspace stays locked until the transaction ends."""
    _lock(workspace)
    member = workspace.memberships.filter(user=user_id).first()
    if member is None:
        raise MembershipRefused("This user is not a member (any more).")
    return member


def _require_another_owner(workspace: Workspace, member: Membership) -> None:
    others = workspace.memberships.filter(role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and not others.exists():
        raise MembershipRefused(f"{workspace} needs an owner: transfer it to another member first.")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
