"""Who belongs to a workspace: inviting, joining, roles, leaving, removing, handing over.

Invariants: a workspace has at least one owner, whatever two people do at once. Its row is locked
first, and only then is the right of `by` checked, so that nobody acts by a role that was just taken
from them. Removal and demotion revoke in the same transaction what the member made and may not make
any more (`projects.revocation`), and their open sockets are closed. Who left or was removed is let
in by no link from before.
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
from webapp.projects.revocation import revoke_beyond

LIFETIME = timedelta(days=7)


class InvitationRefused(Exception):
    """A link that is unknown, spent, revoked or too old; which of them is not told."""


class MembershipRefused(Refused):
    """What would leave a workspace without an owner, or is about nobody in it."""


@transaction.atomic
def invite(workspace: Workspace, user: User, role: Role, single_use: bool) -> str:
    """The path of a new link that makes whoever opens it a member, for seven days.

    It is shown once: only its digest is kept.

    Raises:
        PermissionDenied: `user` may not give that role by a link.
    """
    _lock(workspace)
    if role is Role.OWNER or role not in givable_roles(user, workspace):
        raise PermissionDenied(f"Your role in {workspace} does not let you invite a {role.value}.")
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
    """The invitation of a link; `user` is who opens it, if that is known.

    Raises:
        InvitationRefused: the link lets nobody in, or not `user`, who left since it was made.
    """
    found = Invitation.objects.open().select_related("workspace", "created_by")
    invitation = found.filter(digest=_digest(token)).first()
    if invitation is None or (user is not None and user.pk in invitation.barred):
        raise InvitationRefused
    return invitation


@transaction.atomic
def accept_invitation(token: str, user: User) -> Workspace:
    """Make `user` a member. For who is one already nothing changes, and the link is not spent.

    Raises:
        InvitationRefused: the link lets nobody in, or not `user`, who left since it was made.
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
    """Give a member another role.

    Raises:
        PermissionDenied: `by` may not take the old role or give the new one.
        MembershipRefused: the last owner would become something else.
    """
    member = _member(workspace, user_id)
    require_over(by, workspace, Role(member.role), role)
    _set_role(workspace, member, role)


@transaction.atomic
def remove_member(workspace: Workspace, user_id: int, by: User) -> None:
    """Open sockets of theirs are closed at once.

    Raises:
        PermissionDenied: `by` may not remove somebody of that role.
        MembershipRefused: the last owner, or nobody in the workspace.
    """
    member = _member(workspace, user_id)
    require_over(by, workspace, Role(member.role))
    _end(workspace, member)


@transaction.atomic
def leave(workspace: Workspace, user: User) -> None:
    """Raises `MembershipRefused` if the last owner would leave."""
    _end(workspace, _member(workspace, user.pk))


@transaction.atomic
def transfer(workspace: Workspace, owner: User, user_id: int) -> None:
    """The member becomes an owner, `owner` a maintainer.

    Raises:
        PermissionDenied: `owner` is none.
        MembershipRefused: to nobody in the workspace, or to oneself.
    """
    member = _member(workspace, user_id)
    require(owner, Action.TRANSFER, workspace)
    if owner.pk == user_id:
        raise MembershipRefused("You own it already; choose another member.")
    _set_role(workspace, member, Role.OWNER)
    _set_role(workspace, _member(workspace, owner.pk), Role.MAINTAINER)


def _end(workspace: Workspace, member: Membership) -> None:
    _keep_an_owner(workspace, member)
    member.delete()
    barred = Func(F("barred"), Value(member.user_id), function="array_append")
    workspace.invitations.filter(expires__gt=timezone.now()).update(barred=barred)
    revoke_beyond(workspace, member.user_id)


def _set_role(workspace: Workspace, member: Membership, role: Role) -> None:
    if role is not Role.OWNER:
        _keep_an_owner(workspace, member)
    member.role = role
    member.save(update_fields=["role"])
    revoke_beyond(workspace, member.user_id)


def _lock(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def _member(workspace: Workspace, user_id: int) -> Membership:
    """The membership as it is now; the workspace stays locked until the transaction ends."""
    _lock(workspace)
    member = workspace.memberships.filter(user=user_id).first()
    if member is None:
        raise MembershipRefused("Whom this is about is not a member (any more).")
    return member


def _keep_an_owner(workspace: Workspace, member: Membership) -> None:
    others = workspace.memberships.filter(role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and not others.exists():
        raise MembershipRefused(
            f"{workspace} needs an owner: hand it over to another member first."
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
