"""The page of the model registry."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from webapp.registry.selectors import visible_models


@require_GET
def models(request: HttpRequest) -> HttpResponse:
    """models.html: `models` (Model: name, project; `model.versions.all`, newest first, each with
    number, parameters, sha256, path, created, metadata, agent, step, and run, parent,
    dataset_version, which may be None)."""
    return render(request, "models.html", {"models": visible_models(request.user)})
