"""Sign-in links: made by a command on the server, used once in a browser."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import SignInLink, User

LIFETIME = timedelta(minutes=10)


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


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
