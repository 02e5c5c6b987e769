"""Reads of reports. What a user sees starts with `visible_to`."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may
from webapp.reports.models import ReportPage, ReportVersion

PAGE_ROWS = 50
"""Reports on one page of the list."""


def visible_reports(user: User) -> QuerySet[ReportPage]:
    """Reports that `user` may see, unsorted."""
    reports = ReportPage.objects.visible_to(user)
    return reports.select_related("project__workspace", "created_by", "edited_by")


def visible_report(user: User, page_id: int) -> ReportPage:
    """Returns the report; raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_reports(user), pk=page_id)


def versions_of(page: ReportPage) -> QuerySet[ReportVersion]:
    """The kept versions, newest first. Callers have checked who may see the report."""
    return ReportVersion.objects.filter(page=page).select_related("made_by").order_by("-number")


def may_delete(user: User, page: ReportPage) -> bool:
    """Whether `user` may delete the report: who created it, and those who moderate the project."""
    own = page.created_by_id == user.pk
    return may(user, Action.COMMENT if own else Action.MODERATE, page.project)


def newest_first(user: User, project: Project | None) -> QuerySet[ReportPage]:
    """Reports that `user` may see, of one project or all, the last edited first."""
    reports = visible_reports(user).defer("text").order_by("-edited", "-pk")
    return reports if project is None else reports.filter(project=project)
