"""Pages of API tokens."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.models import Scope
from webapp.accounts.selectors import valid_tokens
from webapp.accounts.tokens import revoke_token
from webapp.projects.selectors import visible_projects, visible_workspaces
from webapp.tokens.forms import TokenForm
from webapp.tokens.services import create_token


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """tokens.html: `tokens` (ApiToken: name, prefix, scopes, workspace, project, created, expires,
    last_used), `form` (TokenForm) and, right after a token was created, its `secret`."""
    resources = list(visible_workspaces(request.user)), list(visible_projects(request.user))
    form = TokenForm(request.user, *resources, request.POST if request.method == "POST" else None)
    context: dict[str, object] = {"tokens": valid_tokens(request.user), "form": form}
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
