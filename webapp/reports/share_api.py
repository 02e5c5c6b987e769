"""REST of links to a report."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Status

from webapp.projects.permissions import Action, require
from webapp.reports import selectors, sharing
from webapp.reports.api import Id
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.sharing import links
from webapp.sharing.link_schemas import LinkList, MadeLink, NewLink

router = Router()


class MadeReportShare(MadeLink):
    """A new link to a report."""


@router.get("/{report_page_id}/shares", response=LinkList)
def list_report_shares(request: HttpRequest, report_page_id: Id, query: Query[Cursor]):
    """Lists active links to a report."""
    report = selectors.visible_report(request.user, report_page_id)
    return page(sharing.shares_of(report), "shares", query)


@router.post("/{report_page_id}/shares", response={201: MadeReportShare})
def share_report(request: HttpRequest, report_page_id: Id, new: NewLink):
    """Creates a link by which anybody may read the report without an account: live, or frozen as it
    is now. It shows no run that you may not share, and nothing else."""
    report = selectors.visible_report(request.user, report_page_id)
    require(request.user, Action.SHARE, report.project)
    lifetime = timedelta(days=new.days)
    made, path = sharing.share(report, request.user, lifetime, frozen=new.frozen)
    made.link = request.build_absolute_uri(path)
    return Status(201, made)


@router.delete("/{report_page_id}/shares/{share_id}", response={204: None})
def unshare_report(
    request: HttpRequest,
    report_page_id: Id,
    share_id: Annotated[int, Path(ge=0, le=LARGEST_ID)],
):
    """Revokes a link: it shows nothing any more."""
    report = selectors.visible_report(request.user, report_page_id)
    require(request.user, Action.SHARE, report.project)
    links.revoke(get_object_or_404(sharing.shares_of(report), pk=share_id))
    return Status(204, None)
