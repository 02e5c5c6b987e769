"""The pages of the model registry."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.registry.selectors import models_with_newest, versions_page


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """models.html: `models` (Model: name, project, version_count; `model.newest`, some
    versions, newest first, each with number, parameters, sha256, created, metadata, agent, step,
    and run, parent, dataset_version, which may be None)."""
    return render(request, "models.html", {"models": models_with_newest(request.user)})


@require_safe
def model(request: HttpRequest, model_id: int) -> HttpResponse:
    """model.html: `model` (as in the list), `versions` (one page of them, as there), `before`
    (whether newer ones were left out) and `next` (for `?before=`, or None)."""
    before = request.GET.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) < 10):
        raise BadRequest("before: give the number of a version, or none")
    page = versions_page(request.user, model_id, int(before) if before else None)
    context = {"model": page.model, "versions": page.versions, "before": before, "next": page.next}
    return render(request, "model.html", context)
