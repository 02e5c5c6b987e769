"""Middleware for the content security policy, and for required sign-in."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'nonce-{nonce}'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        # Signing in at the organisation's provider is a form that leads there.
        f"form-action 'self' {settings.OIDC.origin if settings.OIDC else ''}".rstrip(),
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class ContentSecurityPolicy:
    """Keeps a page from running or loading foreign content: sets a fresh nonce on each request
    (`request.csp_nonce`) and the policy on its response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.csp_nonce = secrets.token_urlsafe(16)
        response = self.get_response(request)
        response.headers["Content-Security-Policy"] = _POLICY.format(nonce=request.csp_nonce)
        response.headers["Permissions-Policy"] = "camera=(), geolocation=(), microphone=()"
        return response


class SignInRequired(LoginRequiredMiddleware):
    """Redirects anonymous users of pages to the sign-in page; REST answers 401 by itself."""

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponse | None:
        if request.path.startswith("/api/"):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        # The form's target cannot be opened; the page that contains the form can.
        return redirect_to_login(_referring_page(request))


def _referring_page(request: HttpRequest) -> str:
    page = request.headers.get("Referer", "")
    path = urlsplit(page).path
    hosts = {request.get_host()}
    ours = all(url_has_allowed_host_and_scheme(one, hosts) for one in (page, path))
    return path if ours else "/"
