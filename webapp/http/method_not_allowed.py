"""Middleware that replaces Django's empty page of a 405 with one of ours, or problem details."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from webapp.http.error_pages import method_not_allowed


class MethodNotAllowedPage:
    """Renders the page of a 405."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != 405:
            return response
        page = method_not_allowed(request)
        page.headers["Allow"] = response.headers["Allow"]
        return page
