"""Pages of exports: the request form and the list."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from webapp.experiments.runs_list.listing import InvalidQuery, RunQuery
from webapp.experiments.runs_list.table import parse_query
from webapp.experiments.selectors import visible_run
from webapp.exports import services
from webapp.exports.forms import ExportForm
from webapp.exports.models import Format, Table
from webapp.exports.selectors import visible_exports
from webapp.projects.permissions import Action, require

SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
def exports(request: HttpRequest) -> HttpResponse:
    """exports.html: `form` (ExportForm), `run` (Run or None) and `filters` (of the list of runs, by
    name) of the requested export, `exports` (Export, newest first), `pending` (whether one is not
    over)."""
    query = _run_query(request)
    run = visible_run(request.user, _id(request)) if request.GET.get("run") else None
    first = {"project": run.project.pk if run else query.project, "run": run and run.pk}
    form = ExportForm(request.user, request.POST or None, initial=first)
    if request.method == "POST" and form.is_valid() and _request_export(request, form, query):
        return redirect(f"{reverse('exports')}?{request.GET.urlencode()}")
    rows = list(visible_exports(request.user)[:SHOWN])
    context = {"form": form, "run": run, "filters": services.filters_of(query), "exports": rows}
    context["pending"] = any(not one.export_state.is_over for one in rows)
    return render(request, "exports.html", context, status=422 if form.errors else 200)


@require_POST
def remove(request: HttpRequest, export_id: uuid.UUID) -> HttpResponse:
    """Deletes the export and its file; redirects to the list."""
    export = services.removable(request.user, export_id)
    services.remove(export)
    messages.success(request, f"{export} is removed.")
    return redirect("exports")


def _request_export(request: HttpRequest, form: ExportForm, query: RunQuery) -> bool:
    given = form.cleaned_data
    require(request.user, Action.READ, given["project"])
    what = Table(given["table"]), Format(given["format"])
    try:
        services.request_export(given["project"], request.user, *what, query, given["run"])
    except services.TooManyExports as error:
        form.add_error(None, f"{error}.")
    return not form.errors


def _run_query(request: HttpRequest) -> RunQuery:
    try:
        return parse_query(request.GET)
    except InvalidQuery as error:
        raise BadRequest(str(error)) from None


def _id(request: HttpRequest) -> uuid.UUID:
    try:
        return uuid.UUID(request.GET["run"])
    except ValueError:
        raise BadRequest("run: give the id of a run") from None
