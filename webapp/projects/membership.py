"""Who belongs to a workspace: inviting, joining, roles, leaving, removing, handing over.

Invariants: a workspace has at least one owner, whatever two people do at once (its row is locked
first); whoever loses access is announced, so that their open sockets are closed at once, and
their tokens for the workspace are revoked. Callers have checked the right to do it
(`projects.permissions`).
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import ApiToken, User
from webapp.accounts.services import announce_access
from webapp.projects.models import Invitation, Membership, Role, Workspace

LIFETIME = timedelta(days=7)


class InvitationRefused(Exception):
    """A link that is unknown, spent, revoked or too old; which of them is not told."""


class MembershipRefused(Exception):
    """What would leave a workspace without an owner, or is about nobody in it."""


def invite(workspace: Workspace, user: User, role: Role, single_use: bool) -> str:
    """The path of a new link that makes whoever opens it a member, for seven days.

    It is shown once: only its digest is kept.
    """
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


def find_invitation(token: str) -> Invitation:
    """Raises `InvitationRefused` if the link lets nobody in."""
    found = Invitation.objects.open().select_related("workspace", "created_by")
    if invitation := found.filter(digest=_digest(token)).first():
        return invitation
    raise InvitationRefused


@transaction.atomic
def accept_invitation(token: str, user: User) -> Workspace:
    """Make `user` a member. For who is one already nothing changes, and the link is not spent.

    Raises:
        InvitationRefused: the link lets nobody in.
    """
    digest = _digest(token)
    invitation = (
        Invitation.objects.open()
        .select_for_update(of=("self",))
        .select_related("workspace")
        .filter(digest=digest)
        .first()
    )
    if invitation is None:
        raise InvitationRefused
    _, is_new = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=user, defaults={"role": invitation.role}
    )
    if is_new:
        Invitation.objects.filter(pk=invitation.pk).update(uses=F("uses") + 1)
    return invitation.workspace


@transaction.atomic
def change_role(workspace: Workspace, user_id: int, role: Role) -> None:
    """Raises `MembershipRefused` if the last owner would become something else."""
    member = _member(workspace, user_id)
    if role is not Role.OWNER:
        _keep_an_owner(workspace, member)
    member.role = role
    member.save(update_fields=["role"])
    announce_access(user_id)


@transaction.atomic
def remove_member(workspace: Workspace, user_id: int) -> None:
    """Also how one leaves. Open sockets of theirs are closed at once, tokens revoked.

    Raises:
        MembershipRefused: the last owner, or nobody in the workspace.
    """
    member = _member(workspace, user_id)
    _keep_an_owner(workspace, member)
    member.delete()
    tokens = ApiToken.objects.filter(workspace=workspace, user=user_id, revoked_at=None)
    tokens.update(revoked_at=timezone.now())
    announce_access(user_id)


@transaction.atomic
def transfer(workspace: Workspace, owner: User, user_id: int) -> None:
    """The member becomes an owner, `owner` a maintainer.

    Raises:
        MembershipRefused: to nobody in the workspace, or to oneself.
    """
    if owner.pk == user_id:
        raise MembershipRefused("You own it already; choose another member.")
    change_role(workspace, user_id, Role.OWNER)
    change_role(workspace, owner.pk, Role.MAINTAINER)


def _member(workspace: Workspace, user_id: int) -> Membership:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
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
