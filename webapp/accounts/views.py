"""Pages of sign-in by a one-time link (allauth does the rest of sign-in), and of API tokens."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.forms import TokenForm
from webapp.accounts.models import Scope
from webapp.accounts.selectors import valid_tokens
from webapp.accounts.services import LinkRefused, use_sign_in_link
from webapp.accounts.tokens import create_token, revoke_token
from webapp.projects.selectors import visible_projects, visible_workspaces


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


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """tokens.html: `tokens` (ApiToken: name, prefix, scopes, workspace, project, created, expires,
    last_used), `form` (TokenForm) and, right after a token was created, its `secret`."""
    resources = list(visible_workspaces(request.user)), list(visible_projects(request.user))
    form = TokenForm(request.user, *resources, request.POST if request.method == "POST" else None)
    context = {"tokens": valid_tokens(request.user), "form": form}
    if form.is_valid():
        given = form.cleaned_data
        context["secret"] = create_token(
            request.user,
            given["name"],
            [Scope(scope) for scope in given["scopes"]],
            given["resource"],
            timedelta(days=given["days"]),
        )
        context["form"] = TokenForm(request.user, *resources)
        return render(request, "tokens.html", context)
    return render(request, "tokens.html", context, status=422 if form.is_bound else 200)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revokes the token; redirects to the list."""
    revoke_token(get_object_or_404(valid_tokens(request.user), pk=token_id))
    return redirect("tokens")
