"""Readiness and metrics for machines, and the operations page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from webapp.http.metrics import may_read
from webapp.operations import overview
from webapp.operations.api import require_operator
from webapp.operations.metrics import Exposition
from webapp.operations.readiness import FAILING, OK, readiness


@never_cache
@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 if this process can serve, else 503: {"status", "checks": {name: ok or failing}}."""
    checks = readiness.answer()
    is_ready = FAILING not in checks.values()
    body = {"status": OK if is_ready else FAILING, "checks": checks}
    return JsonResponse(body, status=200 if is_ready else 503)


@never_cache
@login_not_required
@require_safe
def exposition(request: HttpRequest) -> HttpResponse:
    """Metrics of this process and the installation; without the token there is no such page."""
    if not may_read(request.headers.get("Authorization", "")):
        raise Http404
    encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encoder(Exposition()), content_type=content_type)


@never_cache
@require_safe
def operations(request: HttpRequest) -> HttpResponse:
    """operations.html: each part of `overview.read` by its name, as a `Part`."""
    require_operator(request)
    return render(request, "operations.html", overview.read(request.user))
