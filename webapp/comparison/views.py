"""Page of the comparison of runs."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.comparison import comparison
from webapp.experiments.selectors import comparable_runs, compared_runs


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """compare.html: `compared` (pairs of Run and label), `others` (Runs that may be added),
    `split`, `splits`, and with two runs or more `settings`, `pairs` (of comparison.Pair),
    `confidence`; `page` for the scripts: {labels, runs, curves}. The address holds all of it:
    `?run=A&run=B&split=`.
    """
    split = request.GET.get("split", comparison.SPLITS[0])
    if split not in comparison.SPLITS:
        raise BadRequest(f"split: give one of {', '.join(comparison.SPLITS)}")
    runs = compared_runs(request.user, request.GET.getlist("run"))
    context = comparison.page(runs, split) | {"others": comparable_runs(request.user, runs)}
    return render(request, "compare.html", context)
