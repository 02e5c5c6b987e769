"""Pages of charts and logs. Each does three things: permission, one service call, a template."""

from __future__ import annotations

import uuid

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.experiments.selectors import runs_by_id, visible_run
from webapp.telemetry.presentation import MOST_RUNS, charts_data
from webapp.telemetry.steps import LEVELS


@require_safe
def charts(request: HttpRequest) -> HttpResponse:
    """charts.html: `runs` (Run objects, those named by `?run=ID&run=ID`), and `page`, the dict for
    `{{ page|json_script:"page" }}`: runs [{id, name, number, label, seed, group, agents, url}].
    """
    try:
        wanted = [uuid.UUID(one) for one in dict.fromkeys(request.GET.getlist("run"))]
    except ValueError:
        raise BadRequest("run: give the id of a run, as its address has it") from None
    if len(wanted) > MOST_RUNS:
        raise BadRequest(f"run: {len(wanted)} are named, at most {MOST_RUNS} can be drawn at once")
    found = runs_by_id(request.user, wanted)
    if len(found) != len(wanted):
        raise Http404
    return render(request, "charts.html", {"runs": found, "page": charts_data(found)})


@require_safe
def log(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """log.html: `run` and `levels`, the names of what lines can be."""
    found = visible_run(request.user, run_id)
    return render(request, "log.html", {"run": found, "levels": LEVELS})
