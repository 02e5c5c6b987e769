"""ETag, If-None-Match and If-Match (RFC 9110) for reads by REST: unchanged ones are not sent again,
and a failed precondition is refused as everything else is."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware

from webapp.rest.problem_details import changed_since


class RestETags(ConditionalGetMiddleware):
    """Adds the digest of the body to each response to a GET of REST; a request with that ETag gets
    304, one with another in If-Match 412. Pages are never the same twice (they carry a nonce),
    streams have no digest."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not request.path.startswith("/api/") or request.method != "GET":
            return response
        response.headers.setdefault("Cache-Control", "private, no-cache")
        answer = super().process_response(request, response)
        if answer.status_code != HTTPStatus.PRECONDITION_FAILED or answer is response:
            return answer
        return changed_since(request.headers.get("If-Match", ""), response.headers["ETag"])
