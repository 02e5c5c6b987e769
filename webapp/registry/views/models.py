"""Pages of the model registry. Each does three things: permission, one call, a template."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.errors import Queued
from webapp.experiments.selectors import visible_run
from webapp.model_names import NAMES, REQUIRED, SHARD
from webapp.projects.permissions import Action, permitted_projects, require
from webapp.registry import deletion, services
from webapp.registry.api.models import zipped
from webapp.registry.checkpoints import register_checkpoint
from webapp.registry.errors import RegistryRefused
from webapp.registry.forms import NotesForm
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_imports.selectors import recent_imports
from webapp.registry.presentation import model_page, version_page
from webapp.registry.selectors import (
    compared_versions,
    models_page,
    visible_model,
    visible_version,
)
from webapp.registry.versions import comparison


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """models.html: `models` (Model: name, project, version_count; `newest`, some versions, newest
    first; `named`, its aliases), `next` (for `?after=`, or None) and `after` (whether earlier ones
    were left out), `imports` (ModelImport, each with `can_change`) and `more_imports` (the number
    of recent ones that are not shown), `can_add`, and `project`, the one that the list is narrowed
    to."""
    project, after = request.GET.get("project", ""), request.GET.get("after", "")
    number = _number("project", project) if project else None
    page = models_page(request.user, number, _number("after", after) if after else None)
    projects = permitted_projects(request.user, Action.ADD_MODELS)
    imports, more_imports = recent_imports(request.user, number)
    for one in imports:
        one.can_change = one.project in projects
    context = {
        "models": page.models,
        "next": page.next,
        "after": after,
        "imports": imports,
        "more_imports": more_imports,
        "can_add": bool(projects),
        "project": project,
    }
    return render(request, "models.html", context)


@require_safe
def new_model(request: HttpRequest) -> HttpResponse:
    """new_model.html: `projects` that models can be added to; `model`, if a version of an existing
    one is added (`?model=`), and its `versions`; and lists of a model's files.
    """
    projects = permitted_projects(request.user, Action.ADD_MODELS)
    text = request.GET.get("model", "")
    row = visible_model(request.user, _number("model", text)) if text else None
    if row:
        require(request.user, Action.ADD_MODELS, row.project)
    lists = {"names": sorted(NAMES), "required": REQUIRED, "shard": SHARD.pattern}
    return render(request, "new_model.html", {"projects": projects, "model": row, **lists})


@require_safe
def model(request: HttpRequest, model_id: int) -> HttpResponse:
    """model.html, see `presentation.model_page`."""
    before = request.GET.get("before", "")
    number = _number("before", before) if before else None
    return render(request, "model.html", model_page(request.user, model_id, number))


@require_safe
def version(request: HttpRequest, model_id: int, number: int) -> HttpResponse:
    """version.html, see `presentation.version_page`."""
    row = visible_version(request.user, model_id, number)
    return render(request, "version.html", version_page(request.user, row))


@require_POST
def register(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Registers the checkpoint of `step` as a version of `agent`'s model; redirects to it."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.ADD_MODELS, run.project)
    step = _number("step", request.POST.get("step", ""))
    try:
        registered, _ = register_checkpoint(run, step, request.POST.get("agent", ""), request.user)
    except (RegistryRefused, WeightsError, Queued) as error:
        messages.error(request, str(error))
        return redirect("run", run.pk)
    return redirect("version", registered.model_id, registered.number)


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """compare_versions.html, see `comparison.page`."""
    ids = [_number("version", one) for one in request.GET.getlist("version") if one]
    if len(ids) > comparison.MOST_VERSIONS:
        raise BadRequest(f"version: compare {comparison.MOST_VERSIONS} versions at most")
    versions = compared_versions(request.user, ids)
    return render(request, "compare_versions.html", comparison.page(versions))


@require_safe
def archive(request: HttpRequest, model_id: int, number: int) -> HttpResponse:
    """Returns the files of a version as a zip."""
    row = visible_version(request.user, model_id, number)
    try:
        return zipped(row)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("version", model_id, number)


@require_POST
def notes(request: HttpRequest, model_id: int, number: int) -> HttpResponse:
    """Stores people's notes on a version; redirects to it."""
    row = visible_version(request.user, model_id, number)
    require(request.user, Action.ADD_MODELS, row.model.project)
    form = NotesForm(request.POST)
    if not form.is_valid():
        return render(
            request, "version.html", version_page(request.user, row, notes_form=form), status=422
        )
    services.write_notes(row, form.cleaned_data["notes"])
    return redirect("version", model_id, number)


@require_POST
def delete_version(request: HttpRequest, model_id: int, number: int) -> HttpResponse:
    """Deletes a version; redirects to its model, or back with the references that protect it."""
    row = visible_version(request.user, model_id, number)
    require(request.user, Action.DELETE_MODELS, row.model.project)
    try:
        deletion.delete_version(row)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("version", model_id, number)
    messages.success(request, f"{row} is deleted.")
    return redirect("model", model_id)


@require_POST
def delete_model(request: HttpRequest, model_id: int) -> HttpResponse:
    """Deletes a model with its versions; redirects to the models, or back with the references that
    protect them."""
    row = visible_model(request.user, model_id)
    require(request.user, Action.DELETE_MODELS, row.project)
    try:
        deletion.delete_model(row)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("model", model_id)
    messages.success(request, f"{row} is deleted.")
    return redirect("models")


def _number(name: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise BadRequest(f"{name}: give a number, or none")
