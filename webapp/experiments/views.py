"""Pages of runs. Each does three things: permission, one service call, a template.

The docstring of a view tells the context of its template. On every page there are also `user`
(`user.is_authenticated`), `messages`, `csrf_token` and `request.csp_nonce`.
"""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.events import RunState
from engine.faults import ConfigError
from webapp.experiments import marks, services
from webapp.experiments.forms import AboutForm, ChosenRunsForm, LaunchForm
from webapp.experiments.listing import Unusable, runs_page
from webapp.experiments.models import Run
from webapp.experiments.presentation import page_data
from webapp.experiments.runs_table import runs_table, wish_of
from webapp.experiments.selectors import runs_by_id, visible_run
from webapp.experiments.states import TransitionRefused
from webapp.projects.permissions import Action, may, operable_projects, require


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """runs.html: `table` (`runs_table.RunsTable`: what is asked for, its columns and rows),
    `cursor` (of this page, or ""), `next_cursor` (for `?cursor=`, or None), `states` (RunState
    members: value, label, colour), `can_launch`.
    """
    cursor = request.GET.get("cursor", "")
    try:
        wish = wish_of(request.GET)
        page = runs_page(request.user, wish, cursor)
    except Unusable as error:
        raise BadRequest(str(error)) from None
    context = {
        "runs": page.runs,
        "table": runs_table(wish, page.runs),
        "cursor": cursor,
        "next_cursor": page.next,
        "states": list(RunState),
        "can_launch": bool(operable_projects(request.user)),
    }
    return render(request, "runs.html", context)


@require_POST
def mark_runs(request: HttpRequest) -> HttpResponse:
    """What the list's form does with the runs that were chosen in it; back to the list."""
    form = ChosenRunsForm(request.POST)
    if not form.is_valid():
        messages.error(request, form.first_error())
        return redirect(form.back())
    chosen = runs_by_id(request.user, form.cleaned_data["run"])
    if len(chosen) != len(form.cleaned_data["run"]):
        raise Http404
    return redirect(form.carry_out(request.user, chosen))


@require_http_methods(["GET", "HEAD", "POST"])
def about_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """about.html: `run` and `form` (AboutForm: tags, notes). On success: back to the run."""
    found = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, found.project)
    form = AboutForm(found, request.POST if request.method == "POST" else None)
    if form.is_valid():
        marks.describe(found.pk, **form.cleaned_data)
        return redirect("run", found.pk)
    status = 422 if form.is_bound else 200
    return render(request, "about.html", {"run": found, "form": form}, status=status)


@require_safe
def run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """run.html: `run` (Run, as in the list), `can_operate`, and `page`, the dict for
    `{{ page|json_script:"page" }}`: run {id, name, number, epoch, seed, can_operate}, status
    (state, stop_requested, step, steps, waiting {name, since, deadline}|null, error, restarts,
    queued_at, started_at, finished_at, result), states and verdicts [{value, label,
    colour}], agents [{name, model, version, parameters|null, trainable, role}], config (the whole
    RunConfig), urls {stream, run, state, events, node, stop, resume}; in `urls.node` replace
    TREE and NODE. Stop and resume are POST forms with the csrf token.
    """
    found = visible_run(request.user, run_id)
    can_operate = may(request.user, Action.OPERATE, found.project)
    context = {"run": found, "can_operate": can_operate, "page": page_data(found, can_operate)}
    return render(request, "run.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    """launch.html: `form` (LaunchForm: project, recipe, name, seed, minutes, steps,
    nodes_per_tree, overrides), `can_launch` (whether there is a project to start it in) and
    `problems`, a list of {path, value, reason}: the settings that the engine refuses (status 422).
    On success: redirect to the run page.
    """
    projects = operable_projects(request.user)
    form = LaunchForm(projects, request.POST if request.method == "POST" else None)
    problems: list[dict] = []
    if form.is_valid():
        try:
            return redirect("run", _create(request, form).pk)
        except ConfigError as error:
            problems = error.problems
            form.mark(problems)
    status = 422 if form.is_bound else 200
    context = {"form": form, "problems": problems, "can_launch": bool(projects)}
    return render(request, "launch.html", context, status=status)


def _create(request: HttpRequest, form: LaunchForm) -> Run:
    project = form.cleaned_data["project"]
    require(request.user, Action.OPERATE, project)
    return services.create_experiment_with_run(
        project,
        request.user,
        form.cleaned_data["recipe"],
        form.all_overrides(),
        form.cleaned_data["name"],
    )


@require_POST
def stop(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Ask the run to stop; back to its page, with a message if that is not possible."""
    return _operate(request, run_id, services.request_stop)


@require_POST
def resume(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Queue a stopped or failed run again; back to its page."""
    return _operate(request, run_id, services.resume_run)


def _operate(request: HttpRequest, run_id: uuid.UUID, service) -> HttpResponse:
    found = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, found.project)
    try:
        service(found.pk)
    except TransitionRefused as refusal:
        messages.error(request, f"Nothing changed: {refusal}.")
    return redirect("run", found.pk)
