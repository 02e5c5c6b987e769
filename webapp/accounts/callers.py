"""Who a request comes from, looked up once: whoever counts, keeps or answers it agrees on that.

Invariant: a request to REST that shows a token comes from that token or from nobody, never from the
session that it carries as well; anywhere else a token is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from webapp.accounts.models import User
from webapp.accounts.tokens import user_behind

_KEPT = "_grove_caller"
_SCHEME = "bearer"


@dataclass(frozen=True, slots=True)
class Caller:
    """`user` is None if nobody was identified; one who came by a token carries it."""

    user: User | None
    shows_token: bool = False

    @property
    def key(self) -> str | None:
        """What stands for the caller where requests are counted; None if nobody was identified."""
        if self.user is None:
            return None
        token = self.user.token
        return f"user {self.user.pk}" if token is None else f"token {token.pk}"


def caller_of(request: HttpRequest) -> Caller:
    """The caller of the request; reads the database once for each request."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, _identify(request))
    return getattr(request, _KEPT)


def _identify(request: HttpRequest) -> Caller:
    secret = secret_in(request.headers.get("Authorization", ""))
    if secret is not None and request.path.startswith("/api/"):
        return Caller(user_behind(secret), shows_token=True)
    user = request.user
    return Caller(user if user.is_authenticated and user.is_active else None)


def secret_in(header: str) -> str | None:
    """The secret that an Authorization header shows; None if it is of another scheme."""
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == _SCHEME else None
