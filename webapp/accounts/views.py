"""Page of sign-in by a one-time link (allauth does the rest of sign-in)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.services import LinkRefused, use_sign_in_link


@never_cache
@login_not_required
@require_GET
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """Signs in the link's user and redirects to `next`, or to the runs.

    An invalid link renders error.html (410) with `status`, `title` and `detail`.
    """
    try:
        user = use_sign_in_link(token)
    except LinkRefused:
        context = {
            "status": 410,
            "title": "This sign-in link no longer works",
            "detail": "It has been used or is older than ten minutes. The command "
            "manage.py sign_in_link prints a new one on the server.",
        }
        return render(request, "error.html", context, status=410)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    target = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = "runs"
    return redirect(target)
