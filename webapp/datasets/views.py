"""Pages of datasets."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.datasets import reports, storing
from webapp.datasets.errors import DatasetRefused
from webapp.datasets.forms import DeriveForm, OverlapForm
from webapp.datasets.models import DatasetReport, DatasetVersion
from webapp.datasets.presentation import others, problem_page, version_page
from webapp.datasets.selectors import visible_datasets, visible_version
from webapp.errors import Queued
from webapp.projects.permissions import Action, may, operable_projects, require


@require_safe
def datasets(request: HttpRequest) -> HttpResponse:
    """datasets.html: `datasets` (Dataset: name, project; `dataset.versions.all`, newest first,
    each with number, spec (dict), content_hash, left_out (list of str), created), `projects`
    (that accept the user's uploads)."""
    projects = operable_projects(request.user)
    context = {"datasets": visible_datasets(request.user), "projects": projects}
    return render(request, "datasets.html", context)


@require_safe
def dataset(request: HttpRequest, dataset_id: int) -> HttpResponse:
    """dataset.html: `dataset` with its versions, as in the list, and `can_change`."""
    row = get_object_or_404(visible_datasets(request.user), pk=dataset_id)
    can_change = may(request.user, Action.ADD_DATASETS, row.project)
    return render(request, "dataset.html", {"dataset": row, "can_change": can_change})


@require_safe
def dataset_version(request: HttpRequest, dataset_version_id: int) -> HttpResponse:
    """dataset_version.html: `version`; `stored`; `untrainable` (why no run may train on it, or "");
    `page` (ProblemsPage), `words`, `check`, `checks`, `after`; `counts` and `spreads` (titles with
    figures); `report` (newest check, or None); `overlaps`, `overlap_form`; `seed`, `sizes`,
    `split` (name to numbers); `hard`, `hard_runs`; `uses`; `can_change`."""
    version = visible_version(request.user, dataset_version_id)
    context = version_page(version, request.user, request.GET)
    return render(request, "dataset_version.html", context)


@require_safe
def dataset_problem(request: HttpRequest, dataset_version_id: int, number: int) -> HttpResponse:
    """dataset_problem.html: `problem`, `version`, `statement`, `reference`, `prelude`, `checker`,
    `tests` [{kind, given, expected}], `previous` and `following` (or None)."""
    version = visible_version(request.user, dataset_version_id)
    rows = version.problems.select_related("version__dataset")
    row = get_object_or_404(rows, number=number)
    return render(request, "dataset_problem.html", problem_page(row))


@require_safe
def dataset_report(request: HttpRequest, report_id: int) -> HttpResponse:
    """dataset_report.html: `report`, an overlap with its `other`; `can_change`."""
    kind = DatasetReport.Kind.OVERLAP
    rows = DatasetReport.objects.visible_to(request.user).filter(kind=kind)
    rows = rows.select_related("version__dataset", "other__dataset", "created_by")
    report = get_object_or_404(rows, pk=report_id)
    visible_version(request.user, report.other_id)
    can_change = may(request.user, Action.ADD_DATASETS, report.version.dataset.project)
    return render(request, "dataset_report.html", {"report": report, "can_change": can_change})


@require_POST
def cancel_report(request: HttpRequest, report_id: int) -> HttpResponse:
    """Cancels a check or an overlap; redirects to the version."""
    rows = DatasetReport.objects.visible_to(request.user)
    report = get_object_or_404(rows, pk=report_id)
    version = _changeable(request, report.version_id)
    reports.cancel(report, request.user)
    return redirect("dataset-version", version.pk)


@require_POST
def check_dataset(request: HttpRequest, dataset_version_id: int) -> HttpResponse:
    """Queues a check; redirects to the version."""
    version = _changeable(request, dataset_version_id)
    try:
        reports.request_validation(version, request.user)
    except DatasetRefused as error:
        messages.error(request, str(error))
    return redirect("dataset-version", version.pk)


@require_POST
def derive_dataset(request: HttpRequest, dataset_version_id: int) -> HttpResponse:
    """Derives a version with the good problems; redirects to it."""
    version = _changeable(request, dataset_version_id)
    form = DeriveForm(request.POST)
    try:
        if not form.is_valid():
            raise DatasetRefused([{"path": "keep", "value": "", "reason": "choose what to keep"}])
        fields = (form.cleaned_data["keep"], form.cleaned_data["note"])
        version, _ = storing.derive_version(version, request.user, *fields)
    except (DatasetRefused, Queued) as error:
        messages.error(request, str(error))
    return redirect("dataset-version", version.pk)


@require_POST
def delete_dataset(request: HttpRequest, dataset_version_id: int) -> HttpResponse:
    """Deletes a version; redirects to the list, or to the version if something uses it."""
    version = _changeable(request, dataset_version_id)
    try:
        storing.delete_version(version, request.user)
    except DatasetRefused as error:
        messages.error(request, str(error))
        return redirect("dataset-version", version.pk)
    messages.success(request, f"{version} is deleted.")
    return redirect("datasets")


@require_POST
def compare_dataset(request: HttpRequest, dataset_version_id: int) -> HttpResponse:
    """Queues an overlap; redirects to its page."""
    version = _changeable(request, dataset_version_id)
    form = OverlapForm(others(version, request.user), request.POST)
    try:
        if not form.is_valid():
            raise DatasetRefused(
                [{"path": "other", "value": "", "reason": "choose a version, and a share up to 1"}]
            )
        fields = (form.cleaned_data["other"], form.cleaned_data["threshold"])
        report = reports.request_overlap(version, *fields, request.user)
    except DatasetRefused as error:
        messages.error(request, str(error))
        return redirect("dataset-version", version.pk)
    return redirect("dataset-report", report.pk)


def _changeable(request: HttpRequest, version_id: int) -> DatasetVersion:
    version = visible_version(request.user, version_id)
    require(request.user, Action.ADD_DATASETS, version.dataset.project)
    return version
