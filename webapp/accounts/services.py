"""Sign-in links and notification of open sockets.

A command on the server creates a link, which is used once in a browser. A user's open sockets are
notified when their access has changed.
"""

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
"""Channel of the web processes; the payload is the id of a user whose access may have shrunk."""


class LinkRefused(Exception):
    """Raised for a sign-in link that is unknown, used or too old; does not say which."""


def create_sign_in_link(user: User) -> str:
    """Returns the path of a new one-time link for `user`, valid for ten minutes."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=_digest(token), expires=timezone.now() + LIFETIME)
    return reverse("sign-in-link", args=[token])


@transaction.atomic
def use_sign_in_link(token: str) -> User:
    """Returns the user whom `token` signs in; spends the link.

    Raises:
        LinkRefused: unknown, used or expired link, or a closed account.
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
    """Has these users' open sockets checked again once the transaction is committed."""
    with connection.cursor() as cursor:
        for user_id in user_ids:
            cursor.execute("SELECT pg_notify(%s, %s)", [ACCESS_CHANNEL, str(user_id)])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
