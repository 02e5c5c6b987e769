"""Authentication of a page, by its session; of a program, by its token: `tokens.authentication`."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.security import SessionAuth

from webapp.accounts.models import User


class ActiveSession(SessionAuth):
    """The session of a signed-in user whose account is active."""

    def __call__(self, request: HttpRequest) -> User | None:
        # A program that forgot its token has no session to protect: 401 says how to sign in.
        return super().__call__(request) if self.param_name in request.COOKIES else None

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = request.user
        return user if user.is_authenticated and user.is_active else None


def require_person(user: User) -> None:
    """Raises `PermissionDenied` if the request uses a token: only its user may do this."""
    if user.token is not None:
        raise PermissionDenied("Not possible with a token: sign in and use the site.")
