"""ASGI handler that runs a request in one thread from its first middleware to its response.

Invariants: each request uses one thread and one database connection, and only streamed content
returns to the event loop, without that connection. Django's own handler changes between loop and
thread for every middleware and view that is not async, which none here is.

No more than `most` requests have a thread at once. A request whose body is not complete, an event
stream and a websocket have none, so they do not count.
"""

from __future__ import annotations

import logging
import threading
import time

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch

from engine.config import tracing
from engine.config.log_lines import JSON
from webapp.http import metrics
from webapp.http.log_context import request_id, run_id
from webapp.http.sub_path import PROBES
from webapp.rest.problem_details import problem

logger = logging.getLogger(__name__)

MOST_REQUESTS = 256
"""Concurrent requests; sixteen have a connection to the database, the others wait for one."""


class OneThreadHandler(ASGIHandler):
    """Django's handler for ASGI with the middleware of its handler for WSGI."""

    def __init__(self, most: int = MOST_REQUESTS) -> None:
        super().__init__()
        self._most = most
        self._active = 0
        self._lock = threading.Lock()

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponse:
        if self._active >= self._most:
            response = busy(request)
            self._record(request, response, time.perf_counter())
            return response
        return await sync_to_async(self._answer, thread_sensitive=True)(request)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        # Counted in the thread, which continues after the client has disconnected.
        with self._lock:
            self._active += 1
        began = time.perf_counter()
        try:
            with metrics.counted():
                response = self._traced(request)
            self._record(request, response, began)
            if response.streaming:
                # A slow reader of a download must not keep one of the connections of all requests.
                for connection in connections.all(initialized_only=True):
                    connection.close()
            return response
        finally:
            with self._lock:
                self._active -= 1

    def _traced(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBES:  # every few seconds
            return self.get_response(request)
        method = metrics.method_of(request)
        with tracing.request_span(method, request_id.get()) as span:
            response = self.get_response(request)
            tracing.name_request(span, method, metrics.route_of(request), response.status_code)
        return response

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        match = super().resolve_request(request)
        run_id.set(str(match.kwargs.get("run_id", "")))
        return match

    def _record(self, request: HttpRequest, response: HttpResponseBase, began: float) -> None:
        """Counts and logs a request as its route, never its path, which may contain a secret."""
        seconds = metrics.observe(request, response, began)
        if settings.LOG_FORMAT == JSON:
            about = {
                "method": request.method,
                "route": metrics.route_of(request),
                "status": response.status_code,
                "seconds": round(seconds, 4),
            }
            logger.info("request", extra=about)


def busy(request: HttpRequest) -> HttpResponse:
    """503: too many concurrent requests. No template: it would need the database."""
    detail = "The server is busy. Nothing was done; try again in a few seconds."
    if request.path.startswith("/api/"):
        response: HttpResponse = problem(503, detail)
    else:
        response = HttpResponse(detail, status=503, content_type="text/plain; charset=utf-8")
    response.headers["Retry-After"] = "1"
    return response
