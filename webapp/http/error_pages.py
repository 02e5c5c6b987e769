"""Pages that belong to no app: health and errors."""

from __future__ import annotations

import sys

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp import disk
from webapp.rest.problem_details import DATABASE_RETRY_SECONDS, log_busy_database, problem


@never_cache
@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 {"status": "ok"} if the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})


def _error(request: HttpRequest, status: int, title: str, detail: str) -> HttpResponse:
    """error.html: `status` (number), `title`, `detail` (one sentence each); REST has its own."""
    if request.path.startswith("/api/"):
        return problem(status, detail)
    context = {"status": status, "title": title, "detail": detail}
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 400, "Bad request", str(exception) or "This address is malformed.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    detail = str(exception) or "Your role does not allow this; ask an owner of the workspace."
    return _error(request, 403, "Not allowed", detail)


def method_not_allowed(request: HttpRequest) -> HttpResponse:
    detail = "It accepts only a submitted form. Open the page and use the button there."
    if request.path.startswith("/api/"):
        detail = (
            f"{request.method} is not allowed here; the Allow header lists the methods that are."
        )
    return _error(request, 405, "Page not available", detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    detail = "This page does not exist, or you do not have access to it. Check the address."
    return _error(request, 404, "Not found", detail)


def too_many_requests(request: HttpRequest, seconds: int = 60) -> HttpResponse:
    """429; a repeated request can succeed after `seconds`."""
    detail = f"Too many requests of this kind. Try again in {seconds} seconds."
    response = _error(request, 429, "Too many requests", detail)
    response.headers["Retry-After"] = str(seconds)
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    # Uses no template context of ours: what failed may fail again.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        log_busy_database(sys.exc_info()[1])
        title, detail = (
            "The database does not answer",
            "Nothing is lost. Try again in a few seconds.",
        )
        if request.path.startswith("/api/"):  # such an answer has no title of ours
            detail = f"{title}. {detail}"
        response = _error(request, 503, title, detail)
        response.headers["Retry-After"] = DATABASE_RETRY_SECONDS
        return response
    if disk.is_full(sys.exc_info()[1]):
        return _error(request, disk.STATUS, "The disk is full", disk.FULL)
    detail = "Try again. If it happens again, see logs/web.log in the server's data directory."
    return _error(request, 500, "Server error", detail)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _error(request, 403, "This form is out of date", "Reload the page and try again.")
