"""Pages of searches: permission, one service call, a template. The page of a search is that of its
run."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.config.errors import ConfigError
from webapp.datasets.models import DatasetVersion
from webapp.experiments.launch.launch_page import FormRefused, form_problems, with_agent_names
from webapp.projects.permissions import operable_projects
from webapp.searches.forms import SearchForm
from webapp.searches.launch import launch_page
from webapp.searches.problems import some_problems
from webapp.searches.selectors import searches_page


@require_safe
def searches(request: HttpRequest) -> HttpResponse:
    """searches.html: `searches` (Search with `run`, `problem_id`), `before` (whether newer ones
    were left out), `next` (for `?before=`, or None), `can_search`. `?project=` selects a
    project."""
    before, project = (_number(request, name) for name in ("before", "project"))
    page = searches_page(request.user, before, project)
    context = {
        "searches": page.searches,
        "next": page.next,
        "before": before,
        "project": project,
        "can_search": bool(operable_projects(request.user)),
    }
    return render(request, "searches.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_search(request: HttpRequest) -> HttpResponse:
    """new_search.html: `form` (SearchForm), its `project` and `projects` to choose from, `choices`
    (of team.Choice) and `chosen` (their keys), `versions` (DatasetVersion), `source` (dataset or
    paste), `groups` (of settings_schema.Setting), `values` (path to typed text) and `problems`, a
    list of {path, value, reason}: the refused values (status 422).
    On success redirects to the page of the search's run.
    """
    projects = operable_projects(request.user)
    form = SearchForm(request.user, projects, request.POST or None, initial=request.GET.dict())
    problems: list[dict] = []
    if form.is_bound:
        try:
            return redirect("run", launch_page.start(form).run_id)
        except ConfigError as error:
            problems = with_agent_names(
                error.problems, [agent.name for agent in form.base().agents]
            )
        except FormRefused:
            problems = form_problems(form)
    context = launch_page.page(form, projects, request.user) | {"problems": problems}
    return render(request, "new_search.html", context, status=422 if form.is_bound else 200)


@require_POST
def check_search(request: HttpRequest) -> HttpResponse:
    """Returns the validation of the form as JSON (`launch_page.form_report`). Creates no search."""
    form = SearchForm(request.user, operable_projects(request.user), request.POST)
    return JsonResponse(launch_page.form_report(form, with_preflight="preflight" in request.POST))


@require_safe
def problems(request: HttpRequest, version_id: int) -> HttpResponse:
    """Returns {problems: [{id, statement}]}: the first of a dataset version, to choose from."""
    versions = DatasetVersion.objects.visible_to(request.user).select_related("dataset__project")
    version = get_object_or_404(versions, pk=version_id)
    try:
        return JsonResponse({"problems": some_problems(version)})
    except ConfigError as error:
        return JsonResponse({"problems": [], "reason": error.problems[0]["reason"]})


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequest(f"{name}: give a number, or none")
    return int(text) if text else None
