"""Caller of a request, identified once: limits, idempotency and views agree on it.

The accounts app registers how a caller is identified (`identify_by`), and the projects app what a
caller sees (`see_by`); nothing here imports either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

_CALLER_ATTRIBUTE = "_grove_caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """`user` is None if nobody was identified; one identified by a token carries it."""

    user: Any | None
    shows_token: bool = False

    @property
    def key(self) -> str | None:
        """The caller's key where requests are counted; None if nobody was identified."""
        if self.user is None:
            return None
        token = self.user.token
        return f"user {self.user.pk}" if token is None else f"token {token.pk}"


_registered: dict[str, Callable[[Any], Any]] = {}


def identify_by(identify: Callable[[HttpRequest], Caller]) -> None:
    """Registers the function that identifies the caller of a request."""
    _registered["identify"] = identify


def see_by(projects_of: Callable[[Any], list[int]]) -> None:
    """Registers the function that returns the ids of the projects that a user sees."""
    _registered["projects"] = projects_of


def caller_of(request: HttpRequest) -> Caller:
    """The caller of the request; reads the database once per request."""
    if not hasattr(request, _CALLER_ATTRIBUTE):
        setattr(request, _CALLER_ATTRIBUTE, _registered["identify"](request))
    return getattr(request, _CALLER_ATTRIBUTE)


def projects_seen_by(user: Any) -> list[int]:
    """Ids of the projects that the user sees."""
    return _registered["projects"](user)
