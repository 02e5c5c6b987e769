"""Pages of charts, trees and logs: permission, one service call, a template."""

from __future__ import annotations

import uuid

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.experiments.selectors import runs_by_id, visible_run
from webapp.telemetry import comparison
from webapp.telemetry.presentation import MOST_RUNS, charts_data
from webapp.telemetry.steps import LEVELS


@require_safe
def charts(request: HttpRequest) -> HttpResponse:
    """charts.html: `runs` (Run objects, those named by `?run=ID&run=ID`), and `page`, the dict for
    `{{ page|json_script:"page" }}`, which `presentation.charts_data` describes.
    """
    try:
        ids = [uuid.UUID(one) for one in dict.fromkeys(request.GET.getlist("run"))]
    except ValueError:
        raise BadRequest("run: give the id of a run, as its address has it") from None
    if len(ids) > MOST_RUNS:
        raise BadRequest(f"run: {len(ids)} are named, at most {MOST_RUNS} can be drawn at once")
    runs = runs_by_id(request.user, ids)
    if len(runs) != len(ids):
        raise Http404
    return render(request, "charts.html", {"runs": runs, "page": charts_data(runs)})


@require_safe
def log(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """log.html: `run` and `levels`, the names of the levels of lines."""
    run = visible_run(request.user, run_id)
    return render(request, "log.html", {"run": run, "levels": LEVELS})


@require_safe
def compare_trees(request: HttpRequest) -> HttpResponse:
    """compare_trees.html: `trees` (one or two of `comparison.tree_data`, named by
    `?tree=RUN:TREE`), `choices` ({place, label} of other trees of the first one's problem), `same`
    (whether both are of one problem), and `page`, the dict for
    `{{ page|json_script:"page" }}`: {trees}.
    """
    references = _tree_references(request.GET.getlist("tree"))
    runs = [visible_run(request.user, reference.run) for reference in references]
    opened = [comparison.opened(run, p.tree) for run, p in zip(runs, references, strict=True)]
    if None in opened:
        raise Http404
    trees = list(
        map(comparison.tree_data, runs, (reference.tree for reference in references), opened)
    )
    problems = [tree["problem"] for tree in trees]
    choices = comparison.others(request.user, runs[0], references[0].tree, problems[0])
    context = {"trees": trees, "choices": choices, "same": len(set(problems)) == 1}
    return render(request, "compare_trees.html", {**context, "page": {"trees": trees}})


def _tree_references(given: list[str]) -> list[comparison.TreeReference]:
    try:
        references = [comparison.TreeReference.parse(text) for text in given if text]
    except ValueError:
        references = []
    if not 1 <= len(references) <= 2 or any(reference.tree >= 2**63 for reference in references):
        raise BadRequest("tree: give one or two trees, each as RUN:TREE, the run's id and a number")
    return references
