"""Authentication of REST: a program by its token.

Invariants: a token is looked up before anything is refused, so that invalid ones from an address
never block a valid one; a request with a token is authenticated by that token alone; an invalid one
never falls back on a session. Reading requires a scope that reads (checked here, so that no
operation can omit it); a change is checked where it is made (`permissions.require`).
"""

from __future__ import annotations

from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer

from webapp.accounts.models import User
from webapp.http.audit_context import note_token
from webapp.http.callers import caller_of
from webapp.http.rate_limits import address_of, count_guess
from webapp.projects.permissions import Action, require_scope


class Bearer(HttpBearer):
    """`Authorization: Bearer TOKEN`; reading requires a scope of one of `reading`."""

    def __init__(self, *reading: Action):
        super().__init__()
        self._reading = reading or (Action.READ,)

    def authenticate(self, request: HttpRequest, token: str) -> User:
        user = caller_of(request).user
        if user is None:
            count_guess(address_of(request))
            raise AuthenticationError
        if request.method in ("GET", "HEAD"):
            require_scope(user, *self._reading)
        request.user = user
        note_token(user.token.pk, user.token.name)
        return user
