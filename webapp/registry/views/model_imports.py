"""Pages of imports: the catalogue of pretrained models, and what is done about an import."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from webapp.projects.permissions import Action, permitted_projects, require
from webapp.registry.errors import RegistryRefused
from webapp.registry.forms import PretrainedForm
from webapp.registry.model_imports import states
from webapp.registry.model_imports.catalogue import CatalogueUnusable
from webapp.registry.model_imports.requests import request_package
from webapp.registry.model_imports.selectors import offers, visible_import
from webapp.registry.models import ModelImport
from webapp.rest.problem_details import Invalid


@require_http_methods(["GET", "HEAD", "POST"])
def pretrained(request: HttpRequest) -> HttpResponse:
    """pretrained.html: `offers` (selectors.Offer), `form` (PretrainedForm of the model that was
    posted, or None), `projects` that models can be added to, `fault` of the
    catalogue or "". A post queues the import and redirects to the models, which show its
    progress."""
    projects = permitted_projects(request.user, Action.ADD_MODELS)
    form = None
    if request.method == "POST":
        form = PretrainedForm(request.user, request.POST)
        if form.is_valid() and _requested(request, form):
            return redirect(f"{reverse('models')}#imports")
    context = {"offers": [], "form": form, "projects": projects, "fault": ""}
    status = 422 if form else 200
    try:
        context["offers"] = offers(projects)
    except CatalogueUnusable as refusal:
        context["fault"], status = str(refusal), refusal.status
    return render(request, "pretrained.html", context, status=status)


def _requested(request: HttpRequest, form: PretrainedForm) -> bool:
    given = form.cleaned_data
    require(request.user, Action.ADD_MODELS, given["project"])
    try:
        request_package(
            given["project"], given["package"], request.user, name=given["name"],
            accept_licence=given["accept_licence"],
        )  # fmt: skip
    except (CatalogueUnusable, Invalid, RegistryRefused) as refusal:
        form.add_error(None, str(refusal))
    return not form.errors


@require_POST
def cancel(request: HttpRequest, import_id: int) -> HttpResponse:
    """Cancels an import; redirects to the models."""
    states.cancel(_changeable(request, import_id), request.user)
    return redirect(f"{reverse('models')}#imports")


@require_POST
def retry(request: HttpRequest, import_id: int) -> HttpResponse:
    """Queues a failed or cancelled import again; redirects to the models."""
    try:
        states.retry(_changeable(request, import_id))
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
    return redirect(f"{reverse('models')}#imports")


def _changeable(request: HttpRequest, import_id: int) -> ModelImport:
    one = visible_import(request.user, import_id)
    require(request.user, Action.ADD_MODELS, one.project)
    return one
