"""Answer to a request that waits for its turn."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse, JsonResponse
from ninja import Schema

from webapp.errors import Queued

STATUS = 202


class QueuedOut(Schema):
    """The request waits in a queue. Repeat it, as it is, after the seconds of `Retry-After`, until
    the status is another one."""

    state: Literal["queued"]
    place: int
    """Place in the queue, from 1."""
    waiting: int
    """Number of places in the queue."""
    until: datetime
    """The place is given up then, unless the request is repeated."""
    detail: str


def queued(wait: Queued) -> HttpResponse:
    body = QueuedOut(
        state="queued",
        place=wait.place,
        waiting=wait.waiting,
        until=wait.until,
        detail=str(wait),
    )
    response = JsonResponse(body.model_dump(mode="json"), status=STATUS)
    response.headers["Retry-After"] = str(wait.SECONDS)
    return response
