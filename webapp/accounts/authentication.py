"""Who asks the REST API: a program by its token, or a page by its session.

Invariants: a token is looked up before anything is refused, so that wrong ones from an address
never keep out a right one; a request that shows a token is answered by that token alone; a wrong
one never falls back on a session. Reading needs a scope that reads (checked here, so that no
operation can forget it); what changes something is checked where it is done
(`permissions.require`).
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from webapp.accounts.models import User
from webapp.audit.context import note_token
from webapp.http.callers import caller_of
from webapp.http.rate_limits import address_of, count_guess
from webapp.projects.permissions import Action, require_scope


class Bearer(HttpBearer):
    """`Authorization: Bearer TOKEN`, which to read needs a scope of one of `reading`."""

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
        note_token(user.token)
        return user


class ActiveSession(SessionAuth):
    """The session of somebody who is signed in and whose account is open."""

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = request.user
        return user if user.is_authenticated and user.is_active else None


def require_person(user: User) -> None:
    """Raises `PermissionDenied` if a program asks, by a token: only its user may do this."""
    if user.token is not None:
        raise PermissionDenied("No token does this: sign in, and do it yourself.")
