"""The port of a proxy that does not say it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse


class PortOfProxy:
    """A proxy that sends `Host` without its port (nginx's `$host`) makes Django take each form of
    its pages for one of another site. The browser names the port in `Origin`: behind a trusted
    proxy it counts, if the rest is the same. A page of another port of this host is no stranger: it
    has the same cookies, and the websocket compares the name alone, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.TRUSTED_PROXIES and (port := _port_of_origin(request)):
            request.META["HTTP_HOST"] += f":{port}"
        return self._get_response(request)


def _port_of_origin(request: HttpRequest) -> int | None:
    """Returns the port that the origin has and the host of the request lacks; None if they differ
    otherwise."""
    host = request.META.get("HTTP_HOST", "")
    try:
        origin = urlsplit(request.META.get("HTTP_ORIGIN", ""))
        port = origin.port
    except ValueError:
        return None
    is_same = (origin.scheme, origin.netloc.lower()) == (request.scheme, f"{host}:{port}".lower())
    return port if is_same else None
