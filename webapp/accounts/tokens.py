"""API tokens: the user behind a secret, and revocation at once (creation: `tokens.services`).

Invariant: a user authenticated by a token carries it (`User.token`), so that every check
(`visible_to`, `permissions.may`) is narrowed to the token's workspace or project and its scopes.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.accounts.models import ApiToken, User
from webapp.accounts.services import announce_access

_SALT = "webapp.accounts.tokens"
_PREFIX = "grove_"
_PREFIX_CHARS = len(_PREFIX) + 6
_LAST_USED_PRECISION = timedelta(minutes=1)


def new_secret() -> tuple[str, dict[str, str]]:
    """Returns the secret of a new token, and the fields of its row that follow from it."""
    secret = _PREFIX + secrets.token_urlsafe(32)
    return secret, {"prefix": secret[:_PREFIX_CHARS], "digest": _digest(secret)}


def user_by_secret(secret: str) -> User | None:
    """The user for whom the token acts, carrying it; None if the token is not valid (any more)."""
    token = ApiToken.objects.valid().select_related("user").filter(digest=_digest(secret)).first()
    if token is None:
        return None
    now = timezone.now()
    if token.last_used is None or now - token.last_used >= _LAST_USED_PRECISION:
        ApiToken.objects.filter(pk=token.pk).update(last_used=now)
    token.user.token = token
    return token.user


def reloaded(user: User) -> User | None:
    """The user and their token, read again; None if either is no longer valid."""
    if user.token is None:
        return User.objects.filter(pk=user.pk, is_active=True).first()
    token = ApiToken.objects.valid().select_related("user").filter(pk=user.token.pk).first()
    if token is None:
        return None
    token.user.token = token
    return token.user


@transaction.atomic
def revoke_token(token: ApiToken) -> None:
    """Revokes the token and closes the sockets that it opened."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    announce_access(token.user_id)


def _digest(secret: str) -> str:
    return salted_hmac(_SALT, secret, algorithm="sha256").hexdigest()
