"""Pages of runs. Each does three things: permission, one service call, a template.

The docstring of a view lists the context of its template. Every page also has `user`
(`user.is_authenticated`), `messages`, `csrf_token` and `request.csp_nonce`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.config.errors import ConfigError
from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments import services
from webapp.experiments.annotations import annotations
from webapp.experiments.annotations.actions import actions_of
from webapp.experiments.annotations.forms import AboutForm, ChosenRunsForm
from webapp.experiments.forms import HIGHEST, LOWEST, LaunchForm, NoteForm, PriorityForm
from webapp.experiments.launch import launch_page
from webapp.experiments.launch.checkpoints import checkpoint_steps
from webapp.experiments.models import Run
from webapp.experiments.presentation import page_data, page_parts
from webapp.experiments.runs_list.listing import InvalidQuery, runs_page
from webapp.experiments.runs_list.table import parse_query, runs_table
from webapp.experiments.scheduling.states import NotNow, TransitionRefused
from webapp.experiments.selectors import runs_by_id, visible_run
from webapp.projects.permissions import Action, may, operable_projects, require

Operation = Callable[[uuid.UUID, User], Run]


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """runs.html: `table` (`runs_list.table.RunsTable`: the query, its columns and rows),
    `address` (the query string of the same query),
    `cursor` (of this page, or ""), `next_cursor` (for `?cursor=`, or None), `states` (RunState
    members: value, label, colour), `can_launch`.
    """
    cursor = request.GET.get("cursor", "")
    try:
        query = parse_query(request.GET)
        page = runs_page(request.user, query, cursor)
    except InvalidQuery as error:
        raise BadRequest(str(error)) from None
    context = {
        "runs": page.runs,
        "table": runs_table(query, page.runs),
        "address": query.address(),
        "cursor": cursor,
        "next_cursor": page.next,
        "states": list(RunState),
        "can_launch": bool(operable_projects(request.user)),
    }
    return render(request, "runs.html", context)


@require_POST
def mark_runs(request: HttpRequest) -> HttpResponse:
    """Applies the list form's action to the selected runs; redirects to the list."""
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
    """about.html: `run` and `form` (AboutForm: tags, notes). On success redirects to the run."""
    row = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, row.project)
    form = AboutForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid():
        annotations.describe(row.pk, **form.cleaned_data)
        return redirect("run", row.pk)
    status = 422 if form.is_bound else 200
    return render(request, "about.html", {"run": row, "form": form}, status=status)


@require_safe
def run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """run.html: `run` (Run, as in the list), `variant` (the settings in which it differs from its
    experiment), `can_operate`, `actions` (RunAction, newest first), `checkpoints` (steps to fork
    from), `can_register` (one as a version), and `page`, the dict for
    `{{ page|json_script:"page" }}`: run {id, name, number, epoch, seed, can_operate, begun (is
    there an event?)}, status
    (state, stop_requested, step, steps, waiting {name, since, deadline}|null, error, restarts,
    queued_at, started_at, finished_at, result), states and verdicts [{value, label,
    colour}], agents [{name, model, version, parameters|null, trainable, role}], config (the whole
    RunConfig), urls {stream, run, state, events, node, stop, resume}; in `urls.node` replace
    TREE and NODE; search (null, or of a search at test time: problem, entry_point, public_tests,
    private_tests, budget). Stop and resume are POST forms with the csrf token.
    """
    row = visible_run(request.user, run_id)
    can_operate = may(request.user, Action.OPERATE, row.project)
    context = {
        "run": row,
        "variant": row.variant,
        "can_operate": can_operate,
        "page": page_data(row, can_operate) | page_parts(row),
        "actions": actions_of(row),
        "checkpoints": checkpoint_steps(row),
        "can_register": may(request.user, Action.ADD_MODELS, row.project),
    }
    return render(request, "run.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    """launch.html: `form` (LaunchForm), `groups` (of settings_schema.Setting), `new_agent` (the
    group of an added agent), `values` (path to typed text), `recipes`, `presets` (pairs of Preset
    and its lines), `base` (RunConfig), `origin` (creation.Origin or None), `source` (Run or None),
    `can_launch` (whether there is a project to start it in) and `problems`, a list of {path, value,
    reason}: the refused settings (status 422); `stored_datasets` (DatasetVersion members that a run
    may train on).
    `?recipe=`, `?source=RUN` and `?source=RUN&step=N` choose the starting point.
    On success redirects to the run, or to the runs if there are several.
    """
    projects = operable_projects(request.user)
    form = LaunchForm(request.user, projects, request.POST or None, initial=request.GET.dict())
    problems: list[dict] = []
    if form.is_bound:
        try:
            return _started(request, form)
        except ConfigError as error:
            problems = launch_page.problems_of(form, error)
        except launch_page.FormRefused:
            problems = launch_page.form_problems(form)
    context = launch_page.page(form, request.GET.dict(), request.user)
    context |= {"problems": problems, "can_launch": bool(projects)}
    return render(request, "launch.html", context, status=422 if form.is_bound else 200)


def _started(request: HttpRequest, form: LaunchForm) -> HttpResponse:
    experiment = launch_page.start(form)
    runs = list(experiment.runs.values_list("pk", flat=True)[:2])
    if len(runs) == 1:
        return redirect("run", runs[0])
    messages.success(request, f"{experiment.runs.count()} runs of {experiment.name} are queued.")
    return redirect("runs")


@require_POST
def check_launch(request: HttpRequest) -> HttpResponse:
    """Returns the validation of the form as JSON (`launch_page.form_report`). Creates no run."""
    form = LaunchForm(request.user, operable_projects(request.user), request.POST)
    return JsonResponse(launch_page.form_report(form, with_preflight="preflight" in request.POST))


@require_POST
def stop(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Requests that the run stop; redirects to its page, with a message if that is impossible."""
    return _operate(request, run_id, services.request_stop)


@require_POST
def resume(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Queues a stopped or failed run again; redirects to its page."""
    return _operate(request, run_id, services.resume_run)


@require_POST
def kill(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Ends the run immediately, without a checkpoint; redirects to its page."""
    return _operate(request, run_id, services.request_kill)


@require_POST
def priority(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Changes the run's priority; redirects to its page."""
    form = PriorityForm(request.POST)
    if not form.is_valid():
        raise BadRequest(f"priority: give a whole number, {LOWEST} to {HIGHEST}")
    value = form.cleaned_data["priority"]
    return _operate(request, run_id, partial(_set_priority, value))


def _set_priority(value: int, run_id: uuid.UUID, by: User) -> Run:
    return services.set_priority(run_id, value, by)


@require_POST
def note(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Records a note on the run; redirects to its page."""
    form = NoteForm(request.POST)
    if not form.is_valid():
        raise BadRequest("text: give 1 to 4000 characters")
    text = form.cleaned_data["text"]
    return _operate(request, run_id, lambda pk, by: services.write_note(pk, text, by))


def _operate(request: HttpRequest, run_id: uuid.UUID, service: Operation) -> HttpResponse:
    row = visible_run(request.user, run_id)
    require(request.user, Action.OPERATE, row.project)
    try:
        service(row.pk, request.user)
    except TransitionRefused as refusal:
        messages.error(request, f"Nothing changed: {refusal}.")
    except NotNow as refusal:
        for problem in refusal.problems:
            messages.error(request, f"Nothing changed: {problem['reason']}.")
    return redirect("run", row.pk)
