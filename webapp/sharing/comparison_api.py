"""REST of links to a comparison."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.comparison.api import router
from webapp.comparison.comparison import MOST_RUNS, is_curve
from webapp.rest.json_types import Flag, Integer
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid
from webapp.sharing import comparisons, links
from webapp.sharing.models import ComparisonShare
from webapp.sharing.selectors import comparison_or_404
from webapp.telemetry import guests
from webapp.telemetry.api.metrics import (
    BucketedSeries,
    MetricList,
    MetricsIn,
    RangeIn,
    bucketed,
    metrics_page,
)

shared = Router(auth=None)
Runs = Annotated[list[uuid.UUID], Field(min_length=2, max_length=MOST_RUNS)]
_RUNS = ["5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77", "0b8f6ce2-6f0d-4dd0-8a0e-3a6cf7a7a1c1"]
_EXAMPLE = {
    "id": 4,
    "runs": _RUNS,
    "split": "test",
    "hidden": 0,
    "frozen": True,
    "created": "2026-11-22T10:00:00Z",
    "expires": "2026-11-29T10:00:00Z",
}


class NewComparisonShare(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"run": _RUNS, "split": "test", "days": 7}]},
    )

    run: Runs
    """The first is the baseline of the comparison."""
    split: Literal["test", "validation"] = "test"
    days: Integer = Field(7, ge=1, le=90)
    frozen: Flag = False
    """Whether the link keeps showing the comparison as it is now."""


class ComparisonShareOut(Schema):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: int
    runs: list[uuid.UUID]
    """Those that you may see."""
    hidden: int
    """Number of further runs that it shows."""
    split: str
    frozen: bool
    created: datetime
    expires: datetime

    @staticmethod
    def resolve_hidden(share: ComparisonShare) -> int:
        return getattr(share, "hidden", 0)

    @staticmethod
    def resolve_frozen(share: ComparisonShare) -> bool:
        return share.frozen is not None


class MadeComparisonShare(ComparisonShareOut):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_EXAMPLE, "link": "https://grove.example/shared/..."}]}
    )

    link: str
    """Shown once: only its digest is stored."""


class ComparisonShareList(Schema):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"shares": [_EXAMPLE], "next": None}]}
    )

    shares: list[ComparisonShareOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class ComparisonShareFilters(Cursor):
    run: Annotated[list[uuid.UUID], Field(min_length=1, max_length=MOST_RUNS)]
    """One run lists the links to all comparisons that include it; several, those of exactly
    these."""


@router.get("/shares", response=ComparisonShareList)
def list_comparison_shares(request: HttpRequest, query: Query[ComparisonShareFilters]):
    """Lists active links: to the comparison of exactly these runs, in this order, or, of one run,
    to all comparisons that include it."""
    runs = comparisons.runs_to_compare(request.user, query.run)
    listed = page(comparisons.shares_of(runs), "shares", query)
    for share in listed["shares"]:
        seen = [run.pk for run in comparisons.visible_runs_of(request.user, share)]
        share.hidden = len(set(share.runs)) - len(seen)
        share.runs = seen
    return listed


@router.post("/shares", response={201: MadeComparisonShare})
def share_comparison(request: HttpRequest, new: NewComparisonShare):
    """Creates a link by which anybody may view the comparison without an account: live, or frozen
    as it is now. It shows nothing else of the runs."""
    runs = comparisons.runs_to_compare(request.user, new.run)
    if len(runs) < 2:
        raise Invalid("run", str(runs[0].pk), "give two different runs or more")
    comparisons.require_sharing(request.user, runs)
    lifetime = timedelta(days=new.days)
    made, path = comparisons.share(runs, new.split, request.user, lifetime, frozen=new.frozen)
    made.link = request.build_absolute_uri(path)
    return Status(201, made)


@router.delete("/shares/{share_id}", response={204: None})
def unshare_comparison(request: HttpRequest, share_id: Annotated[int, Path(ge=0, le=LARGEST_ID)]):
    """Revokes the link: it shows nothing any more."""
    links.revoke(comparisons.own_share(request.user, share_id))
    return Status(204, None)


@shared.get("/comparison/{str:secret}", response=dict[str, Any], include_in_schema=False)
def get_shared_comparison(request: HttpRequest, secret: str):
    return comparison_or_404(request, secret).data


@shared.get(
    "/comparison/{str:secret}/{int:index}/metrics",
    response=MetricList,
    include_in_schema=False,
)
def get_compared_metrics(request: HttpRequest, secret: str, index: int, query: Query[MetricsIn]):
    run, view = comparison_or_404(request, secret).view(index)
    data = metrics_page(run, query, view.clamp(query.until))
    return data | {"metrics": [one for one in data["metrics"] if _is_shown(one.name)]}


@shared.get(
    "/comparison/{str:secret}/{int:index}/metrics/{name}",
    response=BucketedSeries,
    by_alias=True,
    include_in_schema=False,
)
def get_compared_metric(
    request: HttpRequest, secret: str, index: int, name: str, query: Query[RangeIn]
):
    run, view = comparison_or_404(request, secret).view(index)
    if not _is_shown(name):
        raise Http404
    return bucketed(run, name, query, view.clamp(query.until))


def _is_shown(name: str) -> bool:
    return is_curve(name) and guests.shows_series(name)
