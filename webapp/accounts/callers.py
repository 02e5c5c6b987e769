"""Identification of the caller of a request (`webapp.http.callers`).

Invariant: a request to REST with a token comes from that token or from nobody, never from the
session that it carries as well; elsewhere a token is ignored.
"""

from __future__ import annotations

from django.http import HttpRequest

from webapp.accounts.tokens import user_by_secret
from webapp.http.callers import Caller

_SCHEME = "bearer"


def identify(request: HttpRequest) -> Caller:
    """The caller of a request, by its token or its session."""
    secret = secret_in(request.headers.get("Authorization", ""))
    if secret is not None and request.path.startswith("/api/"):
        return Caller(user_by_secret(secret), shows_token=True)
    user = request.user
    return Caller(user if user.is_authenticated and user.is_active else None)


def secret_in(header: str) -> str | None:
    """The secret of an Authorization header; None if it is of another scheme."""
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == _SCHEME else None
