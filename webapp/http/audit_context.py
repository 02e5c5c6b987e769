"""Request context of the audit records of its changes (`audit.models`).

Invariant: no secret of an address is stored: of the path only the route, with its placeholders.
"""

from __future__ import annotations

from typing import Any

import pghistory
from django.http import HttpRequest
from pghistory.middleware import HistoryMiddleware


class AuditContext(HistoryMiddleware):
    """Adds user (id), method, route and address (IP) to the audit records of a request.

    The user follows `request.user`, whatever sets it and when (`pghistory.middleware`).
    """

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        recorded = super().get_context(request)
        address = request.META.get("REMOTE_ADDR") or ""
        return {"user": recorded["user"], "method": request.method, "address": address}

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        pghistory.context(route=request.resolver_match.route)


def note_token(token_id: int, name: str) -> None:
    """Records this API token with what the request changes from now on."""
    pghistory.context(token={"id": token_id, "name": name})


def note_user(user_id: int) -> None:
    """Records this user, who was just created, with what the request changes from now on."""
    pghistory.context(user=user_id)
