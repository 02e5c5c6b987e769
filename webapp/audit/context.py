"""Who asks, for the notes of what their request changes (`audit.models`).

Invariant: no secret of an address is kept: of the path the route alone, with its placeholders.
"""

from __future__ import annotations

from typing import Any

import pghistory
from django.http import HttpRequest
from pghistory.middleware import HistoryMiddleware

from webapp.accounts.models import ApiToken


class WhoAsked(HistoryMiddleware):
    """Puts user (id), method, route and address (IP) into the database's notes of a request.

    The user follows `request.user`, whoever sets it and when (`pghistory.middleware`).
    """

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        told = super().get_context(request)
        address = request.META.get("REMOTE_ADDR") or ""
        return {"user": told["user"], "method": request.method, "address": address}

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        pghistory.context(route=request.resolver_match.route)


def note_token(token: ApiToken) -> None:
    """What the request changes from now on is done through this token."""
    pghistory.context(token={"id": token.pk, "name": token.name})


def note_user(user_id: int) -> None:
    """What the request changes from now on is done by this user, who has just come to be."""
    pghistory.context(user=user_id)
