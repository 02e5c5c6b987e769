"""Pages of reports: the list, one report, its form with a preview, and its history."""

from __future__ import annotations

import uuid

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.comments.views import site_of
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may, permitted_projects, require
from webapp.projects.selectors import visible_projects
from webapp.reports import selectors, services
from webapp.reports.content import preview, shown_page
from webapp.reports.embeds.readers import Reader
from webapp.reports.errors import EditConflict, ReportRefused
from webapp.reports.export import exported, file_name
from webapp.reports.forms import EditReportForm, NewReportForm, ReportForm
from webapp.reports.models import ReportPage


@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    """reports.html: `reports` (ReportPage, the last edited first), `project` (of `?project=ID`, or
    None), `projects` to choose from, `can_write`, and `older`, the number of the next page."""
    project, number = _project(request), _number(request, "page") or 1
    first = (number - 1) * selectors.PAGE_ROWS
    rows = selectors.newest_first(request.user, project)
    found = list(rows[first : first + selectors.PAGE_ROWS + 1])
    context = {
        "reports": found[: selectors.PAGE_ROWS],
        "project": project,
        "projects": visible_projects(request.user),
        "can_write": bool(permitted_projects(request.user, Action.COMMENT)),
        "newer": number - 1,
        "older": number + 1 if len(found) > selectors.PAGE_ROWS else None,
    }
    return render(request, "reports.html", context)


@require_safe
def report(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """report.html: `page` (ReportPage), `content` (content.Shown), `can_write`, `can_delete`,
    `can_share`."""
    page = selectors.visible_report(request.user, report_page_id)
    context = {
        "page": page,
        "content": shown_page(page, Reader(request.user, page.project)),
        "can_write": may(request.user, Action.COMMENT, page.project),
        "can_delete": selectors.may_delete(request.user, page),
        "can_share": may(request.user, Action.SHARE, page.project),
    }
    return render(request, "report.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_report(request: HttpRequest) -> HttpResponse:
    """report_form.html, see `_form_page`. A valid form redirects to the new report."""
    given = request.POST if request.method == "POST" else None
    first = {"project": request.GET.get("project"), "text": _run_block(request)}
    form = NewReportForm(request.user, given, initial=first)
    if not form.is_valid():
        return _form_page(request, form)
    project = form.cleaned_data["project"]
    require(request.user, Action.COMMENT, project)
    if "preview" in request.POST:
        return _form_page(request, form, project)
    try:
        page = services.create_report(project, request.user, _draft(request, form))
    except ReportRefused as refusal:
        form.add_error(None, f"{refusal}.")
        return _form_page(request, form, status=409)
    return redirect("report", page.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_report(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """report_form.html, see `_form_page`. A valid form redirects to the report; if somebody saved
    it meanwhile, both texts are shown (409). `?version=N` begins with an earlier version."""
    page = selectors.visible_report(request.user, report_page_id)
    require(request.user, Action.COMMENT, page.project)
    given = request.POST if request.method == "POST" else None
    form = EditReportForm(given, initial=_initial(request, page))
    if not form.is_valid():
        return _form_page(request, form, page=page)
    if "preview" in request.POST:
        return _form_page(request, form, page.project, page)
    try:
        version = form.cleaned_data["version"]
        services.change_report(page, request.user, version, _draft(request, form))
    except EditConflict as conflict:
        kept = {**form.cleaned_data, "version": conflict.current.version}
        again = EditReportForm(initial=kept)
        return _form_page(request, again, page=page, theirs=conflict.current, status=409)
    return redirect("report", page.pk)


@require_safe
def history(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """report_history.html: `page`, `versions` (ReportVersion, newest first), `can_write`."""
    page = selectors.visible_report(request.user, report_page_id)
    context = {
        "page": page,
        "versions": selectors.versions_of(page),
        "can_write": may(request.user, Action.COMMENT, page.project),
    }
    return render(request, "report_history.html", context)


@require_safe
def export_report(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """The report as one HTML file."""
    page = selectors.visible_report(request.user, report_page_id)
    return file_of(page, Reader(request.user, page.project))


@require_POST
def delete_report(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """Deletes the report; redirects to the list of its project."""
    page = selectors.visible_report(request.user, report_page_id)
    require_may_delete(request, page)
    services.delete_report(page)
    return redirect("reports")


def require_may_delete(request: HttpRequest, page: ReportPage) -> None:
    """Raises `PermissionDenied` unless the user created the report, or moderates its project."""
    own = page.created_by_id == request.user.pk
    require(request.user, Action.COMMENT if own else Action.MODERATE, page.project)


def file_of(page: ReportPage, reader: Reader) -> HttpResponse:
    """The exported file of a report, which the browser stores."""
    name = file_name(page)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(
        exported(page, reader), content_type="text/html; charset=utf-8", headers=headers
    )


def _form_page(
    request: HttpRequest,
    form: ReportForm,
    project: Project | None = None,
    page: ReportPage | None = None,
    status: int = 200,
    **context: object,
) -> HttpResponse:
    """report_form.html: `form`, `page` (the edited one, or None), `preview` (content.Shown) if a
    `project` is given, and after a conflict `theirs`, the report as it is stored now."""
    if project is not None:
        reader = Reader(request.user, project)
        context["preview"] = preview(form.cleaned_data["text"], reader, page)
    status = 422 if form.errors and status == 200 else status
    return render(
        request, "report_form.html", {"form": form, "page": page, **context}, None, status
    )


def _draft(request: HttpRequest, form: ReportForm) -> services.Draft:
    given = form.cleaned_data
    return services.Draft(given["title"], given["text"], site_of(request))


def _initial(request: HttpRequest, page: ReportPage) -> dict[str, object]:
    source = page
    if number := _number(request, "version"):
        source = get_object_or_404(selectors.versions_of(page), number=number)
    return {"version": page.version, "title": source.title, "text": source.text}


def _run_block(request: HttpRequest) -> str:
    """The beginning of a report about the run of `?run=ID`."""
    try:
        run = uuid.UUID(request.GET["run"])
    except (KeyError, ValueError):
        return ""
    return f"```grove chart\nrun: {run}\nseries: reward\n```\n"


def _project(request: HttpRequest) -> Project | None:
    number = _number(request, "project")
    return get_object_or_404(visible_projects(request.user), pk=number) if number else None


def _number(request: HttpRequest, name: str) -> int | None:
    given = request.GET.get(name, "")
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and 0 < len(given) < 10 and int(given)):
        raise BadRequest(f"{name}: {given[:40]}: give a number from 1")
    return int(given)
