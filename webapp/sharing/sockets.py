"""Admission of guests to the stream by the secret of a share link."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async

from webapp.sharing.services import Guest, guest_by
from webapp.telemetry.stream.access import RejectedUser, rejected


def shared_secret(scope: dict[str, Any]) -> str | None:
    """Returns the secret of a guest's share link (`/stream?share=SECRET`)."""
    given = parse_qs(scope["query_string"].decode("latin-1")).get("share")
    return given[0] if given else None


@database_sync_to_async
def guest_by_secret(secret: str, address: str) -> Guest | RejectedUser:
    """Returns the guest of a share link; `RejectedUser` if it is unknown, revoked or expired."""
    why = "this link was revoked or has expired: ask its sender for another"
    return guest_by(secret) or rejected(address, why)
