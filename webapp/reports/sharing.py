"""Links to a report: creation, what a guest sees, and revocation.

Invariants: a guest sees the text and the figures, and no address of anything else; figures show
only runs of projects that the link's maker may share, now; a frozen link shows nothing later than
its creation; a link shows nothing if the report is gone or its maker may no longer share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.urls import reverse

from webapp.accounts.models import User
from webapp.http.rate_limits import address_of, count_guess
from webapp.projects.models import Project
from webapp.reports.content import Shown, Source, directives_in, shown, source_of
from webapp.reports.directives import BlockError, Directive
from webapp.reports.embeds.for_guests import shown_to_guests
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import ReportPage, ReportShare
from webapp.sharing import links

_SALT = "webapp.reports.sharing"


def share(
    page: ReportPage, user: User, lifetime: timedelta, *, frozen: bool
) -> tuple[ReportShare, str]:
    """Returns the share and the path of its link, whose secret is stored only as a digest. The
    caller has checked that `user` may share what is in the project."""
    kept = snapshot(page, user) if frozen else None
    made, secret = links.create(
        ReportShare, _SALT, user, lifetime, project=page.project, page=page, frozen=kept
    )
    return made, reverse("shared-report", args=[secret])


def shares_of(page: ReportPage) -> QuerySet[ReportShare]:
    """Active links to the report, newest first."""
    shares = ReportShare.objects.valid().filter(page=page)
    return shares.select_related("created_by").order_by("-pk")


def snapshot(page: ReportPage, user: User) -> dict[str, Any]:
    """Returns the report as a guest of `user` sees it now, in plain values: {title, text, edited,
    figures: {key: {data, frozen_at} or {error}}}."""
    reader = Reader(user, page.project, is_guest=True)
    source = source_of(page, reader)
    return {
        "title": page.title,
        "text": page.text,
        "edited": page.edited.isoformat(),
        "figures": {one.key: _kept(one, source) for one in directives_in(page.text)},
    }


def _kept(directive: Directive, source: Source) -> dict[str, Any]:
    try:
        data, frozen_at = source(directive)
    except BlockError as error:
        return {"error": {"name": error.name, "value": error.value, "remedy": error.remedy}}
    return {"data": data, "frozen_at": frozen_at and frozen_at.isoformat()}


@dataclass(frozen=True)
class SharedReport:
    """What a link shows."""

    share: ReportShare
    title: str
    edited: datetime
    content: Shown


def shared_report(request: HttpRequest, secret: str) -> SharedReport:
    """What a link shows; counts a wrong secret. Raises `Http404` if it shows nothing (any more)."""
    shares = ReportShare.objects.select_related("page__project__workspace")
    found = links.find(shares, _SALT, secret)
    if not isinstance(found, ReportShare) or not links.maker_may_share(found, [found.page.project]):
        count_guess(address_of(request))
        raise Http404
    page, maker = found.page, found.created_by
    assert maker is not None, "a link without its maker shows nothing"
    reader = Reader(maker, page.project, is_guest=True)
    if found.frozen is None:
        content = shown(page.text, _for_guests(source_of(page, reader)))
        return SharedReport(found, page.title, page.edited, content)
    edited = datetime.fromisoformat(found.frozen["edited"])
    content = shown(found.frozen["text"], _for_guests(_snapshot_source(found, reader)))
    return SharedReport(found, found.frozen["title"], edited, content)


def _for_guests(source: Source) -> Source:
    """The source without what no link shows."""

    def shown_source(directive: Directive) -> tuple[dict[str, Any], datetime | None]:
        data, frozen_at = source(directive)
        return shown_to_guests(directive, data), frozen_at

    return shown_source


def _snapshot_source(share: ReportShare, reader: Reader) -> Source:
    figures = (share.frozen or {})["figures"]

    def source(directive: Directive) -> tuple[dict[str, Any], datetime | None]:
        kept = figures.get(directive.key)
        if kept is None:
            raise directive.error("frozen", share, "the link does not have this figure")
        if error := kept.get("error"):
            raise BlockError(directive.line, **error)
        projects = {run["project"] for run in kept["data"]["runs"]}
        others = Project.objects.filter(pk__in=projects - {reader.project.pk})
        if not all(map(reader.may_share, others)):
            raise directive.error("run", "", "this run is not shared by the link")
        moment = kept["frozen_at"]
        at = datetime.fromisoformat(moment) if moment else share.created
        return kept["data"], at

    return source
