"""Wrappers of allauth's views: allowed methods, and 404 for services that are not configured."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods, require_safe

View = Callable[..., HttpResponseBase]
LOCKED_SECONDS = 300
"""How long wrong passwords lock a name (allauth's limit of failed sign-ins)."""

pages = require_safe
forms = require_http_methods(["GET", "HEAD", "POST"])


def with_mail(view: View) -> View:
    """404 unless mail is configured: what is sent there would reach nobody."""
    return _if_configured("MAIL_IS_SENT", view)


def with_provider(view: View) -> View:
    """404 unless an OpenID provider is configured."""
    return _if_configured("OIDC", view)


def _if_configured(setting: str, view: View) -> View:
    @wraps(view)
    def gate(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not getattr(settings, setting):
            raise Http404
        return view(request, *args, **kwargs)

    return gate


def with_lockout_status(view: View) -> View:
    """429 with Retry-After, instead of 200, after too many wrong passwords."""

    @wraps(view)
    def gate(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        form = (getattr(response, "context_data", None) or {}).get("form")
        if form is not None and form.has_error(NON_FIELD_ERRORS, "too_many_login_attempts"):
            response.status_code = 429
            response.headers["Retry-After"] = str(LOCKED_SECONDS)
        return response

    return gate
