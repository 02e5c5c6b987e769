"""Whether whoever is behind a socket may still be there, and still see what it follows."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import AnonymousUser

from webapp.accounts.models import User
from webapp.accounts.tokens import as_of_now, user_behind
from webapp.experiments.models import Run
from webapp.projects.permissions import Action, has_scope

_SCHEME = b"bearer "


def authorization(scope: dict[str, Any]) -> bytes | None:
    """The header by which a program says who it is."""
    return next((value for name, value in scope["headers"] if name == b"authorization"), None)


@database_sync_to_async
def user_by_token(header: bytes) -> User | AnonymousUser:
    """Whom the token of an authorization header lets in; nobody if it is not valid."""
    secret = header[len(_SCHEME) :] if header.lower().startswith(_SCHEME) else b""
    return user_behind(secret.decode("latin-1").strip()) or AnonymousUser()


@database_sync_to_async
def visible_among(user: User, run_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the runs that the user may see now; none if the account was closed."""
    now = as_of_now(user)
    if now is None or not has_scope(now, Action.READ):
        return set()
    visible = Run.objects.visible_to(now).filter(pk__in=run_ids)
    return set(visible.values_list("pk", flat=True))


@database_sync_to_async
def why_to_leave(scope: dict[str, Any]) -> str | None:
    """Why the socket may stay open no longer: what opened it, session or token, is gone."""
    if scope["user"].token is not None:
        return None if as_of_now(scope["user"]) else "this token was revoked or has expired"
    session = scope["session"]
    return None if session.exists(session.session_key) else "you signed out"
