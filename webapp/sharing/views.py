"""Pages of shares: creating and revoking links, and the guest's page."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.experiments.selectors import visible_run
from webapp.projects.permissions import Action, may, require
from webapp.sharing import comparisons, services
from webapp.sharing.forms import ShareForm
from webapp.sharing.models import ComparisonShare, Share
from webapp.sharing.selectors import (
    guest_or_404,
    shared_page_data,
    shared_variant,
    shares_of,
)

MOST_COMPARED = 100
"""Maximum number of links to comparisons that a run's page lists; REST pages through all."""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def shares(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """shares.html: `run`, `shares` (Share), `compared` (ComparisonShare with `seen`, its runs that
    the user sees, and `hidden`, the number of its other runs), `can_share`, `form` (ShareForm; its
    initial values come from the query) and, right after a link was created, its `link`."""
    run = visible_run(request.user, run_id)
    form = ShareForm(request.POST if request.method == "POST" else None, initial=_initial(request))
    context = {"run": run, "form": form, "can_share": may(request.user, Action.SHARE, run.project)}
    if request.method == "POST":
        require(request.user, Action.SHARE, run.project)
        context["link"] = _make(request, run, form)
    status = 422 if form.errors else 200
    listed = {"shares": shares_of(run), "compared": _compared(request, run)}
    return render(request, "shares.html", {**context, **listed}, status=status)


def _compared(request: HttpRequest, run: services.Run) -> list[ComparisonShare]:
    shares = list(comparisons.shares_of([run])[:MOST_COMPARED])
    for one in shares:
        one.seen = comparisons.visible_runs_of(request.user, one)
        one.hidden = len(set(one.runs)) - len(one.seen)
    return shares


def _initial(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET[name] for name in ("tree", "until") if name in request.GET} | {
        "days": 7
    }


def _make(request: HttpRequest, run: services.Run, form: ShareForm) -> str | None:
    if not form.is_valid():
        return None
    given = form.cleaned_data
    lifetime = timedelta(days=given["days"])
    try:
        _, path = services.create_share(run, request.user, lifetime, given["tree"], given["until"])
    except services.ShareRefused as refusal:
        form.add_error("until" if str(refusal).startswith("event") else "tree", f"{refusal}.")
        return None
    return request.build_absolute_uri(path)


@require_POST
def revoke(request: HttpRequest, run_id: uuid.UUID, share_id: int) -> HttpResponse:
    """Revokes the link; redirects to the list."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.SHARE, run.project)
    services.revoke_share(get_object_or_404(Share.objects.filter(run=run), pk=share_id))
    return redirect("shares", run.pk)


@never_cache
@login_not_required
@require_safe
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """run.html for a guest: `run`, `variant`, `guest`, and `page` without operations. 404 without a
    share."""
    guest = guest_or_404(request, secret)
    run = guest.share.run
    context = {"run": run, "variant": shared_variant(run), "guest": guest}
    context["page"] = shared_page_data(guest)
    return render(request, "run.html", context)
