"""Pages of links to a comparison: creating and revoking them, and the guest's page."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.comparison.comparison import CONFIDENCE, MOST_RUNS, SPLITS
from webapp.experiments.models import Run
from webapp.experiments.selectors import compared_runs
from webapp.projects.permissions import Action, may
from webapp.sharing import comparisons, links
from webapp.sharing.forms import ComparisonShareForm
from webapp.sharing.selectors import comparison_or_404


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def comparison_shares(request: HttpRequest) -> HttpResponse:
    """comparison_shares.html: `runs`, `split`, `back` (the comparison's address), `shares`
    (ComparisonShare), `can_share`, `form`, and, right after a link was created, its `link`."""
    runs, split = _requested_comparison(request)
    form = ComparisonShareForm(request.POST if request.method == "POST" else None)
    context = {"runs": runs, "split": split, "form": form, "back": _address(runs, split)}
    context["can_share"] = all(may(request.user, Action.SHARE, run.project) for run in runs)
    if request.method == "POST":
        comparisons.require_sharing(request.user, runs)
        if form.is_valid():
            context["link"] = _make(request, runs, split, form.cleaned_data)
    context["shares"] = comparisons.shares_of(runs)
    status = 422 if form.errors else 200
    return render(request, "comparison_shares.html", context, status=status)


def _requested_comparison(request: HttpRequest) -> tuple[list[Run], str]:
    parameters = request.POST if "run" in request.POST else request.GET
    runs = compared_runs(request.user, parameters.getlist("run"), MOST_RUNS)
    split = parameters.get("split", SPLITS[0])
    if len(runs) < 2 or split not in SPLITS:
        raise BadRequest(f"run: give two or more; split: give one of {', '.join(SPLITS)}")
    return runs, split


def _address(runs: list[Run], split: str) -> str:
    return (
        f"{reverse('compare')}?{urlencode([*(('run', run.pk) for run in runs), ('split', split)])}"
    )


def _make(request: HttpRequest, runs: list[Run], split: str, given: dict) -> str:
    lifetime = timedelta(days=given["days"])
    _, path = comparisons.share(runs, split, request.user, lifetime, frozen=given["frozen"])
    return request.build_absolute_uri(path)


@require_POST
def revoke_comparison_share(request: HttpRequest, share_id: int) -> HttpResponse:
    """Revokes the link; redirects to the comparison."""
    one = comparisons.own_share(request.user, share_id)
    links.revoke(one)
    seen = comparisons.visible_runs_of(request.user, one)
    if len(seen) < len(set(one.runs)):  # they may not see the comparison
        return redirect("shares", seen[0].pk)
    return redirect(_address(seen, one.split))


@never_cache
@login_not_required
@require_safe
def shared_comparison(request: HttpRequest, secret: str) -> HttpResponse:
    """shared_comparison.html: `share`, `names` (pairs of label and run's name), and the context of
    `parts/compared.html`. 404 without a share."""
    shown = comparison_or_404(request, secret)
    context = {
        **shown.data,
        "share": shown.share,
        "names": list(zip(shown.data["labels"], shown.data["names"], strict=True)),
        "confidence": f"{100 * CONFIDENCE:.0f} %",
        "page": shown.page(secret),
    }
    return render(request, "shared_comparison.html", context)
