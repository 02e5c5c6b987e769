"""REST of a run's metrics: names, buckets of a range, points."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from engine.events.vocabulary import RunState
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.rest.pagination import LARGEST_ID, Cursor, page
from webapp.rest.problem_details import Invalid
from webapp.telemetry.api.log import answers
from webapp.telemetry.models import Metric
from webapp.telemetry.series import reads
from webapp.telemetry.series.as_of import MetricAsOf, metric_or_none, metrics_as_of

router = Router()

Seq = Annotated[int | None, Field(ge=1, le=LARGEST_ID)]
"""Seq of the last event that counts; None means the newest."""

_NUMBERS = {"type": "array", "items": {"type": "number"}}
_POINTS = {
    "type": "object",
    "properties": {
        "points": {
            "type": "object",
            "properties": {name: _NUMBERS for name in reads.POINT_FIELDS},
            "additionalProperties": False,
        },
        "next": {"type": ["integer", "null"]},
    },
    "required": ["points", "next"],
    "examples": [{"points": {"step": [1, 2], "value": [0.25, 0.5]}, "next": 1}],
}


class Newest(Schema):
    step: int
    time: float
    """Seconds since the run's first event."""
    tokens: int
    nodes: int
    value: float


class MetricOut(Schema):
    name: str
    points: int
    last: Newest

    @staticmethod
    def resolve_last(metric: Metric | MetricAsOf) -> Metric | MetricAsOf:
        return metric


class MetricList(Schema):
    metrics: list[MetricOut]
    next: int | None
    state: RunState | None = None
    """State of the run, which shows whether more may follow; None if an earlier event was
    requested."""


class MetricsIn(Cursor):
    until: Seq = None


class Buckets(Schema):
    """Columns of equal length, one entry for each bucket that holds a point."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "at": [0, 1],
                    "from": [1, 51],
                    "to": [50, 100],
                    "min": [0.1, 0.2],
                    "max": [0.4, 0.6],
                    "mean": [0.2, 0.4],
                    "count": [50, 50],
                }
            ]
        }
    )

    at: list[int]
    """Index among the requested buckets, from 0."""
    from_: list[float] = Field(alias="from")
    """Smallest x of its points; `to` is the largest."""
    to: list[float]
    min: list[float]
    max: list[float]
    mean: list[float]
    count: list[int]


class Gaps(Schema):
    """Buckets without a point in which an event reported the number as null or not finite. Columns
    of equal length; a line ends before a gap."""

    at: list[int]
    """Index among the requested buckets, from 0."""
    x: list[float]
    """x of the first such event."""


class BucketedSeries(Schema):
    name: str
    x: reads.Axis
    from_: float = Field(alias="from")
    to: float
    points: int
    """Number of points in the range: each is in exactly one bucket."""
    buckets: Buckets
    gaps: Gaps


class RangeIn(Schema):
    x: reads.Axis = reads.Axis.STEP
    from_: float | None = Field(None, alias="from", ge=-1e15, le=1e15, allow_inf_nan=False)
    to: float | None = Field(None, ge=-1e15, le=1e15, allow_inf_nan=False)
    points: int = Field(600, ge=1, le=4000)
    scale: reads.Scale = reads.Scale.LINEAR
    until: Seq = None

    def to_range(self, until: int | None) -> reads.Range:
        """Returns the range as of event `until`. Raises `Invalid` for an empty range."""
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise Invalid("from", self.from_, f"give one that is not above `to`, {self.to}")
        return reads.Range(self.x, self.from_, self.to, self.points, self.scale, until)


class PointsIn(Schema):
    cursor: int | None = Field(None, ge=0, lt=2**63)
    """`next` of the previous page."""
    limit: int = Field(1000, ge=1, le=100_000)
    fields: str = Field(",".join(reads.POINT_FIELDS), max_length=100, pattern=r"^[^\x00]*$")
    """Names of columns, separated by commas."""

    def columns(self) -> list[str]:
        """Returns the requested columns. Raises `Invalid` for an unknown column."""
        names = [name.strip() for name in self.fields.split(",")]
        for name in names:
            if name not in reads.POINT_FIELDS:
                raise Invalid("fields", name, f"give some of {', '.join(reads.POINT_FIELDS)}")
        return list(dict.fromkeys(names))


@router.get("/{uuid:run_id}/metrics", response=MetricList)
def list_metrics(request: HttpRequest, run_id: uuid.UUID, query: Query[MetricsIn]):
    """Lists the metrics of the run in the order in which they were first recorded, each with the
    number of its points and the newest. With `until` they are all on one page, as of that event,
    including points of steps that a resumed run has repeated since."""
    return metrics_page(visible_run(request.user, run_id), query, query.until)


@router.get("/{uuid:run_id}/metrics/{name}", response=BucketedSeries, by_alias=True)
def get_metric(request: HttpRequest, run_id: uuid.UUID, name: str, query: Query[RangeIn]):
    """Returns one metric from x = `from` to `to` in at most `points` buckets: minimum, maximum,
    mean and count of the points of each. No point is left out. `scale=log` makes buckets of equal
    width in log x; `until` returns the metric as of that event."""
    return bucketed(visible_run(request.user, run_id), name, query, query.until)


@router.get(
    "/{uuid:run_id}/metrics/{name}/points", openapi_extra=answers("application/json", _POINTS)
)
def list_points(
    request: HttpRequest, run_id: uuid.UUID, name: str, query: Query[PointsIn]
) -> HttpResponse:
    """Returns the points, page by page, in the order in which they were recorded, as columns of
    equal length. `time` is seconds since the run's first event, `seq` that of the event."""
    metric = _metric(visible_run(request.user, run_id), name, None)
    body = reads.points(metric, query.cursor, query.limit, query.columns())
    return HttpResponse(body, content_type="application/json")


def metrics_page(run: Run, query: Cursor, until: int | None) -> dict[str, Any]:
    """Returns the response of `list_metrics` for a run whose visibility was checked."""
    metrics = reads.metrics_of(run)
    if until is None:
        return {**page(metrics, "metrics", query), "state": run.state}
    return {"metrics": metrics_as_of(run, until), "next": None}


def bucketed(run: Run, name: str, query: RangeIn, until: int | None) -> dict[str, Any]:
    """Returns the response of `get_metric` for a run whose visibility was checked. Raises `Http404`
    for an unknown metric."""
    return reads.buckets(_metric(run, name, until), query.to_range(until))


def _metric(run: Run, name: str, until: int | None) -> Metric:
    reads.metrics_of(run)
    metric = None if "\0" in name else metric_or_none(run, name, until)
    if metric is None:
        raise Http404
    return metric
