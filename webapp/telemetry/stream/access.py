"""Authentication and authorization of a socket, at its start and while it is open."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.utils.crypto import constant_time_compare

from webapp.accounts.callers import secret_in
from webapp.accounts.models import User
from webapp.accounts.tokens import reloaded, user_by_secret
from webapp.experiments.models import Run
from webapp.http.rate_limits import count_guess, counted_address
from webapp.projects.permissions import Action, has_scope
from webapp.rest.problem_details import TooMany
from webapp.telemetry.stream.protocol import Close, Closing
from webapp.telemetry.stream.view import View
from webapp.telemetry.stream.visitors import Visitor


def authorization(scope: dict[str, Any]) -> bytes | None:
    """Returns the authorization header of a program."""
    return next((value for name, value in scope["headers"] if name == b"authorization"), None)


def address_of(scope: dict[str, Any]) -> str:
    """Returns the socket's address, by which wrong secrets are counted."""
    return counted_address((scope.get("client") or ("",))[0])


class RejectedUser(AnonymousUser):
    """Anonymous user with an invalid secret; `why` is the reason with which the socket closes."""

    def __init__(self, why: Closing):
        super().__init__()
        self.why = why


@database_sync_to_async
def user_by_token(header: bytes, address: str) -> User | RejectedUser:
    """Returns the user of an authorization header's token; `RejectedUser` if it is invalid."""
    user = user_by_secret(secret_in(header.decode("latin-1")) or "")
    return user or rejected(address, "this token is not valid: create another")


def rejected(address: str, why: str) -> RejectedUser:
    """Counts a wrong secret and returns `RejectedUser` with `why`; if the address exceeds its
    limit, with that as the reason."""
    try:
        count_guess(address)
    except TooMany as refusal:
        why = f"too many wrong tokens came from your address: {refusal}"
        return RejectedUser(Closing(Close.TOO_MANY, why, 1000 * refusal.seconds))
    return RejectedUser(Closing(Close.NOT_SIGNED_IN, why))


def may_read(user: User | Visitor) -> bool:
    """Returns whether the socket's user may read any run at all."""
    return isinstance(user, Visitor) or has_scope(user, Action.READ)


def view_of(user: User | Visitor, run_id: uuid.UUID) -> View:
    """Returns the user's view of a visible run."""
    return user.view if isinstance(user, Visitor) else View.of_all(run_id)


def ends_at(user: User | Visitor) -> datetime | None:
    """Returns when the user's token or share expires, if it does."""
    if isinstance(user, Visitor):
        return user.expires
    return user.token.expires if user.token else None


@database_sync_to_async
def visible_among(user: User | Visitor, run_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Returns those of the runs that the user may see now; none if the account was closed."""
    if isinstance(user, Visitor):
        return {user.run_id} & set(run_ids) if user.is_admitted() else set()
    now = reloaded(user)
    if now is None or not has_scope(now, Action.READ):
        return set()
    visible = Run.objects.visible_to(now).filter(pk__in=run_ids)
    return set(visible.values_list("pk", flat=True))


@database_sync_to_async
def why_to_leave(scope: dict[str, Any]) -> str | None:
    """Returns why the socket must close, if its session, token or share is no longer valid."""
    if isinstance(scope["user"], Visitor):
        return None if scope["user"].is_admitted() else "this link was revoked or has expired"
    if scope["user"].token is not None:
        return None if reloaded(scope["user"]) else "this token was revoked or has expired"
    return None if _is_still_signed_in(scope) else "you signed out"


def _is_still_signed_in(scope: dict[str, Any]) -> bool:
    """Returns whether the session is stored and began with the user's current password."""
    session = SessionStore(scope["session"].session_key).load()
    user = User.objects.filter(pk=scope["user"].pk).first()
    began_with = session.get(HASH_SESSION_KEY, "")
    return user is not None and constant_time_compare(began_with, user.get_session_auth_hash())
