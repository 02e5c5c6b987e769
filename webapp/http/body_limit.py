"""Limit on request bodies: one piece of an upload; what exceeds it is not read.

Invariant: Django, which spools a body to disk before any view sees it, never receives more than
`longest()` bytes. Waits for nothing that the server does not wait for anyway.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from webapp.rest.problem_details import problem

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_MARGIN = 1 << 16


def longest() -> int:
    """Bytes of the largest body: a piece of an upload, and some margin in which a view can report
    by how much a piece is too long."""
    return settings.ARTIFACT_CHUNK_BYTES + _MARGIN


def content_length(scope: dict[str, Any]) -> int:
    """The request's Content-Length in bytes; 0 if it is missing or not a number."""
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() and len(text) < 20 else 0


def refusal_of(scope: dict[str, Any]) -> HttpResponse | None:
    """The refusal of a request that announces too long a body, or two lengths; else None."""
    if content_length(scope) > longest():
        most = settings.ARTIFACT_CHUNK_BYTES
        return problem(413, f"The body is too long: {most} bytes at most.")
    names = {name for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:  # a proxy may use the other one
        return problem(400, "Send Content-Length or Transfer-Encoding, not both.")
    return None


async def refuse(response: HttpResponse, send: Send) -> None:
    """Sends the refusal and closes, whatever remains of the body."""
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def limited(receive: Receive) -> Receive:
    """`receive`, but a body that grows too long without an announced length is disconnected."""
    received = 0

    async def receive_some() -> dict[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        return message if received <= longest() else {"type": "http.disconnect"}

    return receive_some
