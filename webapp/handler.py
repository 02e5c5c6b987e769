"""How a request is answered: in one thread from its first middleware to its response.

Invariant: what answers a request has one thread and one connection to the database, and only what
is streamed comes back to the event loop. Django's own handler changes between loop and thread for
every middleware and view that is not async, which none here is.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse


class OneThreadHandler(ASGIHandler):
    """Django's handler for ASGI with the middleware of its handler for WSGI."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponse:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
