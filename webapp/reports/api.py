"""REST of reports."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field, StringConstraints

from webapp.comments.views import site_of
from webapp.names import required_name
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.reports import selectors, services
from webapp.reports.content import shown_page
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import ReportPage, ReportVersion
from webapp.reports.views import file_of, require_may_delete
from webapp.rest.json_types import Integer, integer
from webapp.rest.pagination import LARGEST_ID, Cursor, page

router = Router()

Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
Title = required_name(services.LONGEST_TITLE)
Text = Annotated[str, StringConstraints(max_length=services.LONGEST, pattern=r"^[^\x00]*$")]
_TEXT = (
    "It learns:\n\n```grove chart\nrun: 5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77\nseries: reward\n```"
)


class ReportFilters(Cursor):
    project: int | None = Field(None, ge=0, le=LARGEST_ID)


class ReportPageRow(Schema):
    id: int
    project: int
    title: str
    version: int
    created_by: str
    created: datetime
    edited_by: str
    edited: datetime

    @staticmethod
    def resolve_project(report: ReportPage) -> int:
        return report.project_id

    @staticmethod
    def resolve_created_by(report: ReportPage) -> str:
        return report.created_by.username

    @staticmethod
    def resolve_edited_by(report: ReportPage) -> str:
        return report.edited_by.username


class ReportPageList(Schema):
    reports: list[ReportPageRow]
    next: int | None
    """Cursor of the next page, null on the last."""


class ReportProblem(Schema):
    """What a block cannot show, and why."""

    line: int
    name: str
    value: str
    remedy: str


class ReportPageOut(ReportPageRow):
    text: str
    """Markdown with blocks."""
    html: str
    """Text and figures as they are now, safe to show; figures are SVG and tables."""
    problems: list[ReportProblem]


class NewReportPage(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"project": 1, "title": "Wider trees", "text": _TEXT}]},
    )

    project: Integer
    title: Title
    text: Text = ""


class ChangedReportPage(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"version": 1, "text": _TEXT}]}
    )

    version: integer(ge=1, lt=2**31)
    """The version that the change began with; 409 with both texts if it is not the newest."""
    title: Title | None = None
    """Null keeps it; `text` likewise."""
    text: Text | None = None


class ReportVersionOut(Schema):
    number: int
    title: str
    text: str
    made_by: str
    made: datetime

    @staticmethod
    def resolve_made_by(version: ReportVersion) -> str:
        return version.made_by.username


class ReportVersionList(Schema):
    versions: list[ReportVersionOut]


@router.get("", response=ReportPageList)
def list_reports(request: HttpRequest, query: Query[ReportFilters]):
    """Lists reports, of one project or all that you see."""
    reports = selectors.visible_reports(request.user).defer("text")
    if query.project is not None:
        reports = reports.filter(project=query.project)
    return page(reports, "reports", query)


@router.post("", response={201: ReportPageOut})
def create_report(request: HttpRequest, new: NewReportPage):
    """Creates a report: Markdown with blocks that embed charts, trees and tables of runs, live or
    frozen; notifies members mentioned by @name. A block that cannot be used is among `problems`."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.COMMENT, project)
    draft = services.Draft(new.title, new.text, site_of(request))
    return Status(201, _out(request, services.create_report(project, request.user, draft)))


@router.get("/{report_page_id}", response=ReportPageOut)
def get_report(request: HttpRequest, report_page_id: Id):
    """Returns a report with its figures as you may see them now."""
    return _out(request, selectors.visible_report(request.user, report_page_id))


@router.patch("/{report_page_id}", response=ReportPageOut)
def change_report(request: HttpRequest, report_page_id: Id, change: ChangedReportPage):
    """Saves a further version. If somebody saved one since `version`: 409, with theirs as `current`
    and your text as `yours`, and nothing is stored."""
    report = selectors.visible_report(request.user, report_page_id)
    require(request.user, Action.COMMENT, report.project)
    title = report.title if change.title is None else change.title
    text = report.text if change.text is None else change.text
    draft = services.Draft(title, text, site_of(request))
    changed = services.change_report(report, request.user, change.version, draft)
    return _out(request, changed)


@router.delete("/{report_page_id}", response={204: None})
def delete_report(request: HttpRequest, report_page_id: Id):
    """Deletes a report that you created, or as a maintainer any, with its history and links."""
    report = selectors.visible_report(request.user, report_page_id)
    require_may_delete(request, report)
    services.delete_report(report)
    return Status(204, None)


@router.get("/{report_page_id}/versions", response=ReportVersionList)
def list_report_versions(request: HttpRequest, report_page_id: Id):
    """Lists the kept versions of a report, at most 100, newest first."""
    report = selectors.visible_report(request.user, report_page_id)
    return {"versions": list(selectors.versions_of(report))}


@router.get(
    "/{report_page_id}/export",
    openapi_extra={
        "responses": {
            200: {
                "description": "OK",
                "content": {"text/html": {"schema": {"type": "string"}}},
            }
        }
    },
)
def get_report_file(request: HttpRequest, report_page_id: Id) -> HttpResponse:
    """Returns the report as one HTML file that needs no network and no script."""
    report = selectors.visible_report(request.user, report_page_id)
    return file_of(report, Reader(request.user, report.project))


def _out(request: HttpRequest, report: ReportPage) -> ReportPage:
    """The report with its `html` and `problems`."""
    content = shown_page(report, Reader(request.user, report.project))
    report.html = render_to_string("parts/report_content.html", {"content": content})
    report.problems = content.problems
    return report
