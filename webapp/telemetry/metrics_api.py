"""REST of the series of numbers that a run tells: names, buckets of a range, points."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.paging import Cursor, page
from webapp.telemetry import series
from webapp.telemetry.api import answers
from webapp.telemetry.known import known_metrics, metric_or_none
from webapp.telemetry.models import Metric
from webapp.telemetry.schemas import (
    POINTS,
    BucketedSeries,
    MetricList,
    MetricsIn,
    PointsIn,
    RangeIn,
)

router = Router()


@router.get("/{uuid:run_id}/metrics", response=MetricList)
def list_metrics(request: HttpRequest, run_id: uuid.UUID, asked: Query[MetricsIn]):
    """Every series of numbers of the run, in the order in which they were first told, each with how
    many points it has and the newest. With `until` they are all on one page, as they were known
    after that event, also of steps that a resumed run did again since."""
    return metrics_page(visible_run(request.user, run_id), asked, asked.until)


@router.get("/{uuid:run_id}/metrics/{name}", response=BucketedSeries, by_alias=True)
def get_metric(request: HttpRequest, run_id: uuid.UUID, name: str, asked: Query[RangeIn]):
    """One series from x = `from` to `to` in at most `points` buckets: least, greatest, mean and
    number of the points of each. None is left out. `scale=log` makes buckets of equal width in
    log x; `until` leaves to the series what was known after that event."""
    return bucketed(visible_run(request.user, run_id), name, asked, asked.until)


@router.get(
    "/{uuid:run_id}/metrics/{name}/points", openapi_extra=answers("application/json", POINTS)
)
def list_points(
    request: HttpRequest, run_id: uuid.UUID, name: str, asked: Query[PointsIn]
) -> HttpResponse:
    """The points themselves, page by page, in the order in which they were told: columns of equal
    length. `time` is seconds since the run's first event, `seq` that of the event."""
    metric = _metric(visible_run(request.user, run_id), name, None)
    told = series.points(metric, asked.cursor, asked.limit, asked.columns())
    return HttpResponse(told, content_type="application/json")


def metrics_page(run: Run, asked: Cursor, until: int | None) -> dict[str, Any]:
    """What `list_metrics` answers of a run that one may see."""
    metrics = series.metrics_of(run)
    if until is None:
        return page(metrics, "metrics", asked)
    return {"metrics": known_metrics(run, until), "next": None}


def bucketed(run: Run, name: str, asked: RangeIn, until: int | None) -> dict[str, Any]:
    """What `get_metric` answers of a run that one may see; raises `Http404` for no such series."""
    return series.buckets(_metric(run, name, until), asked.asked(until))


def _metric(run: Run, name: str, until: int | None) -> Metric:
    series.metrics_of(run)
    found = None if "\0" in name else metric_or_none(run, name, until)
    if found is None:
        raise Http404
    return found
