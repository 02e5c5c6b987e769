"""Reads of a workspace's audit records, newest first, over all its tables.

Invariant: pages are cut by (moment, source, id), which no two rows share: records added meanwhile
neither duplicate nor hide a row. Callers have checked who may see it (`Action.AUDIT`).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, OuterRef, Q, QuerySet, Subquery

from webapp.accounts.models import User
from webapp.audit import models
from webapp.audit.presentation import Names, actor_id, people_in, sentence
from webapp.experiments.models import Run
from webapp.projects.models import Workspace
from webapp.rest.pagination import moment_in


class BadCursor(ValueError):
    """Raised for a cursor that no page of ours returned."""


@dataclass(frozen=True, slots=True)
class Source:
    """One table of audit records."""

    name: str
    kind: str
    """The kind by which people filter; several sources may share one."""
    rows: QuerySet[Any]
    workspace: str
    """Path from a row to its workspace; if it ends with `__overlap`, to the ids of its runs, which
    may belong to several."""
    person: str = "pgh_context__user"
    """Path from a row to the id of the acting user."""


def _before() -> Subquery:
    earlier = models.MembershipEvent.objects.filter(
        pgh_obj_id=OuterRef("pgh_obj_id"), pgh_id__lt=OuterRef("pgh_id")
    )
    return Subquery(earlier.order_by("-pgh_id").values("role")[:1])


def _title() -> Subquery:
    """The last title of the report of a link: its own records outlive it."""
    of_page = models.ReportPageEvent.objects.filter(pgh_obj_id=OuterRef("page_id"))
    return Subquery(of_page.order_by("-pgh_id").values("title")[:1])


_RUN = "experiment__project__workspace"
SOURCES = (
    Source("workspace", "workspace", models.WorkspaceEvent.objects.all(), "pgh_obj_id"),
    Source(
        "membership", "member",
        models.MembershipEvent.objects.select_related("workspace").annotate(before=_before()),
        "workspace",
    ),
    Source("invitation", "invitation", models.InvitationEvent.objects.all(), "workspace"),
    Source("project", "project", models.ProjectEvent.objects.all(), "workspace"),
    Source("token", "token", models.TokenEvent.objects.all(), "workspace"),
    Source(
        "share", "share", models.ShareEvent.objects.select_related("run__experiment"),
        f"run__{_RUN}",
    ),
    Source("comparison", "share", models.ComparisonEvent.objects.all(), "runs__overlap"),
    Source(
        "run-action", "run",
        models.RunActionEvent.objects.select_related("run__experiment"), f"run__{_RUN}", "user",
    ),
    Source(
        "run-mark", "run",
        models.RunMarkEvent.objects.select_related("pgh_obj__experiment"), f"pgh_obj__{_RUN}",
    ),
    Source(
        "comment", "comment", models.CommentEvent.objects.select_related("run__experiment"),
        f"run__{_RUN}",
    ),
    Source(
        "report", "report", models.ReportPageEvent.objects.select_related("project"),
        "project__workspace",
    ),
    Source(
        "report-share", "share", models.ReportShareEvent.objects.annotate(title=_title()),
        "project__workspace",
    ),
    Source(
        "dataset", "dataset", models.DatasetEvent.objects.select_related("dataset"),
        "dataset__project__workspace",
    ),
    Source(
        "model", "model",
        models.ModelEvent.objects.select_related("model", "run__experiment"),
        "model__project__workspace",
    ),
    Source(
        "promotion", "model", models.PromotionEvent.objects.select_related("model"),
        "model__project__workspace",
    ),
    Source(
        "alert-rule", "alert", models.AlertRuleEvent.objects.select_related("project"), "workspace"
    ),
    Source(
        "alert-channel", "alert",
        models.AlertChannelEvent.objects.select_related("project"),
        "project__workspace",
    ),
    Source("run-deletion", "run", models.RunDeletionEvent.objects.all(), "workspace"),
    Source("retention", "workspace", models.RetentionEvent.objects.all(), "workspace"),
    Source("setting", "workspace", models.SettingEvent.objects.all(), "workspace"),
)  # fmt: skip
KINDS = tuple(dict.fromkeys(source.kind for source in SOURCES))


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Query of audit records; None does not filter."""

    person: int | None = None
    """Id of the acting user."""
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""


@dataclass(frozen=True, slots=True)
class Entry:
    at: datetime
    kind: str
    person: int | None
    """Id of the acting user; None is the machine."""
    name: str
    """Of the acting user, as it is now; the machine's is `presentation.MACHINE`."""
    text: str
    token: str | None
    """Name of the API token that was used, if any."""
    method: str | None
    route: str | None
    """Of the request: its path, with placeholders for the names in it."""
    address: str | None


def entries(
    workspace: Workspace, query: AuditQuery, cursor: str | None, limit: int
) -> tuple[list[Entry], str | None]:
    """A page of `limit` and the cursor of the next one, None on the last.

    Raises:
        BadCursor: `cursor` was not made here.
    """
    position = _position(cursor) if cursor else None
    chosen = [(index, one) for index, one in enumerate(SOURCES) if query.kind in (None, one.kind)]
    rows = [
        (_key(row, index), row)
        for index, source in chosen
        for row in _rows(source, index, workspace, query, position)[: limit + 1]
    ]
    newest = heapq.nlargest(limit + 1, rows, key=lambda one: one[0])
    shown = newest[:limit]
    names = _names([row for _, row in shown])
    more = _cursor(shown[-1][0]) if len(newest) > limit else None
    return [_entry(row, SOURCES[key[1]], names) for key, row in shown], more


def newest_record_ids(workspace: Workspace) -> list[int | None]:
    """The id of the newest record of each source: any further record changes it."""
    return [_in(source, workspace).aggregate(newest=Max("pgh_id"))["newest"] for source in SOURCES]


def _in(source: Source, workspace: Workspace) -> QuerySet[Any]:
    if not source.workspace.endswith("__overlap"):
        return source.rows.filter(**{source.workspace: workspace.pk})
    runs = Run.objects.filter(**{_RUN: workspace.pk}).values_list("pk")
    return source.rows.filter(**{source.workspace: runs})


def people_of(workspace: Workspace) -> list[User]:
    """All present and past members of the workspace, by name."""
    noted = models.MembershipEvent.objects.filter(workspace=workspace).values("user")
    both = Q(pk__in=noted) | Q(memberships__workspace=workspace)
    return list(User.objects.filter(both).distinct().order_by("username"))


Key = tuple[datetime, int, int]


def _rows(
    source: Source, index: int, workspace: Workspace, query: AuditQuery, position: Key | None
) -> QuerySet[Any]:
    rows = _in(source, workspace)
    if query.person is not None:
        rows = rows.filter(**{source.person: query.person})
    if query.since:
        rows = rows.filter(pgh_created_at__gte=query.since)
    if query.until:
        rows = rows.filter(pgh_created_at__lt=query.until)
    if position:
        rows = rows.filter(_after(position, index))
    return rows.order_by("-pgh_created_at", "-pgh_id")


def _after(position: Key, index: int) -> Q:
    at, last, pk = position
    older, same = Q(pgh_created_at__lt=at), Q(pgh_created_at=at)
    if index == last:
        return older | same & Q(pgh_id__lt=pk)
    return older | same if index < last else older


def _key(row: Any, index: int) -> Key:
    return row.pgh_created_at, index, row.pgh_id


def _cursor(key: Key) -> str:
    at, index, pk = key
    return f"{at.isoformat()}~{index}~{pk}"


def _position(cursor: str) -> Key:
    try:
        at, index, pk = cursor.split("~")
        moment, source, number = moment_in(at), int(index), int(pk)
    except ValueError:
        raise BadCursor(cursor) from None
    if not (0 <= source < len(SOURCES) and 0 <= number < 2**63):
        raise BadCursor(cursor)
    return moment, source, number


def _names(rows: list[Any]) -> Names:
    ids = set().union(*map(people_in, rows)) if rows else set()
    return Names(dict(User.objects.filter(pk__in=ids).values_list("pk", "username")))


def _entry(row: Any, source: Source, names: Names) -> Entry:
    context = row.pgh_context or {}
    return Entry(
        at=row.pgh_created_at,
        kind=source.kind,
        person=actor_id(row),
        name=names.of(actor_id(row)),
        text=sentence(source.name, row, names),
        token=context.get("token", {}).get("name"),
        method=context.get("method"),
        route=context.get("route"),
        address=context.get("address") or None,
    )
