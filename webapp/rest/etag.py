"""ETag and If-None-Match (RFC 9110) for REST: unchanged reads are not sent again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.middleware.http import ConditionalGetMiddleware


class RestETags(ConditionalGetMiddleware):
    """Adds the digest of the body to each response to a GET of REST; a request with that ETag gets
    304. Pages are never the same twice (they carry a nonce), streams have no digest."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if not request.path.startswith("/api/") or request.method != "GET":
            return response
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return super().process_response(request, response)
