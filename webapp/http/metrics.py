"""Metrics of this process for Prometheus, and who may read them.

Invariants: each process has its own numbers at its own address, so that several web processes or
workers never share counters. Labels have few values: routes with their placeholders, never paths.
Nothing is shown without `GROVE_METRICS_TOKEN`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

REGISTRY = CollectorRegistry()
"""Of this process; apps and workers add their own metrics to it."""
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_requests = Counter(
    "grove_http_requests", "Responses begun.", ["method", "route", "status"], registry=REGISTRY
)
_latency = Histogram(
    "grove_http_request_seconds",
    "Seconds from a request's headers and body to the start of its response.",
    ["method", "route"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_active = Gauge("grove_http_requests_active", "Requests that have a thread.", registry=REGISTRY)
sockets = Gauge("grove_websockets", "Open websockets of the stream.", registry=REGISTRY)


@contextmanager
def counted() -> Iterator[None]:
    """Counts a request as active for the duration."""
    _active.inc()
    try:
        yield
    finally:
        _active.dec()


def observe(request: HttpRequest, response: HttpResponseBase, began: float) -> float:
    """Records a response and returns its seconds; `began` is the `time.perf_counter()` of its
    request."""
    seconds = time.perf_counter() - began
    method, route = method_of(request), route_of(request)
    _requests.labels(method, route, response.status_code).inc()
    _latency.labels(method, route).observe(seconds)
    return seconds


def method_of(request: HttpRequest) -> str:
    """Returns the method, `other` for one that HTTP does not define."""
    return request.method if request.method in _METHODS else "other"


def route_of(request: HttpRequest) -> str:
    """Returns the route, with placeholders in place of what a path names."""
    match = getattr(request, "resolver_match", None)
    return f"/{match.route}" if match else "none"


def may_read(authorization: str) -> bool:
    """Returns whether this value of an Authorization header carries the token for metrics."""
    token = settings.METRICS_TOKEN
    scheme, _, given = authorization.partition(" ")
    if not token or scheme.lower() != "bearer":
        return False
    return secrets.compare_digest(given.strip().encode(), token.encode())
