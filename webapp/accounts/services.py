"""Sign-in links: made by a command on the server, used once in a browser. And telling the open
sockets of a user that what they may see has changed."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import connection, transaction
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import SignInLink, User

LIFETIME = timedelta(minutes=10)
ACCESS_CHANNEL = "grove_access"
"""What the web processes listen to; the payload is the id of a user who may see less now."""


class LinkRefused(Exception):
    """A sign-in link that is unknown, used or too old; which of them is not told."""


def create_sign_in_link(user: User) -> str:
    """The path of a new one-time link for `user`; it is good for ten minutes."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=_digest(token), expires=timezone.now() + LIFETIME)
    return reverse("sign-in-link", args=[token])


@transaction.atomic
def use_sign_in_link(token: str) -> User:
    """The user whom `token` lets in; the link is spent.

    Raises:
        LinkRefused: unknown, used or expired link, or an account that was closed.
    """
    now = timezone.now()
    link = (
        SignInLink.objects.select_for_update(of=("self",))
        .select_related("user")
        .filter(digest=_digest(token), used_at=None, expires__gt=now, user__is_active=True)
        .first()
    )
    if link is None:
        raise LinkRefused
    link.used_at = now
    link.save(update_fields=["used_at"])
    return link.user


def announce_access(*user_ids: int) -> None:
    """Have the open sockets of these users looked at anew once the transaction is committed."""
    with connection.cursor() as cursor:
        for user_id in user_ids:
            cursor.execute("SELECT pg_notify(%s, %s)", [ACCESS_CHANNEL, str(user_id)])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
