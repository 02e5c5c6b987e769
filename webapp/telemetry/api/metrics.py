"""REST of the series of numbers that a run tells: names, buckets of a range, points."""

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
from webapp.telemetry.series.as_of import Known, known_metrics, metric_or_none

router = Router()

Seq = Annotated[int | None, Field(ge=1, le=LARGEST_ID)]
"""Of the last event that counts; none is the newest."""

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
    def resolve_last(metric: Metric | Known) -> Metric | Known:
        return metric


class MetricList(Schema):
    metrics: list[MetricOut]
    next: int | None
    state: RunState | None = None
    """Of the run, whether more may come; None where an earlier moment was asked for."""


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
    """Place among the buckets that were asked for, from 0."""
    from_: list[float] = Field(alias="from")
    """Least x of its points; `to` is the greatest."""
    to: list[float]
    min: list[float]
    max: list[float]
    mean: list[float]
    count: list[int]


class BucketedSeries(Schema):
    name: str
    x: reads.Axis
    from_: float = Field(alias="from")
    to: float
    points: int
    """Points in the range: each is in exactly one bucket."""
    buckets: Buckets


class RangeIn(Schema):
    x: reads.Axis = reads.Axis.STEP
    from_: float | None = Field(None, alias="from", ge=-1e15, le=1e15, allow_inf_nan=False)
    to: float | None = Field(None, ge=-1e15, le=1e15, allow_inf_nan=False)
    points: int = Field(600, ge=1, le=4000)
    scale: reads.Scale = reads.Scale.LINEAR
    until: Seq = None

    def asked(self, until: int | None) -> reads.Range:
        """As it was known after event `until`; raises `Invalid` for a range without an inside."""
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise Invalid("from", self.from_, f"give one that is not above `to`, {self.to}")
        return reads.Range(self.x, self.from_, self.to, self.points, self.scale, until)


class PointsIn(Schema):
    cursor: int | None = Field(None, ge=0, lt=2**63)
    """`next` of the page before."""
    limit: int = Field(1000, ge=1, le=100_000)
    fields: str = Field(",".join(reads.POINT_FIELDS), max_length=100, pattern=r"^[^\x00]*$")
    """Names of columns, with commas between them."""

    def columns(self) -> list[str]:
        """Raises `Invalid` for a column that there is not."""
        asked = [name.strip() for name in self.fields.split(",")]
        for name in asked:
            if name not in reads.POINT_FIELDS:
                raise Invalid("fields", name, f"give some of {', '.join(reads.POINT_FIELDS)}")
        return list(dict.fromkeys(asked))


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
    "/{uuid:run_id}/metrics/{name}/points", openapi_extra=answers("application/json", _POINTS)
)
def list_points(
    request: HttpRequest, run_id: uuid.UUID, name: str, asked: Query[PointsIn]
) -> HttpResponse:
    """The points themselves, page by page, in the order in which they were told: columns of equal
    length. `time` is seconds since the run's first event, `seq` that of the event."""
    metric = _metric(visible_run(request.user, run_id), name, None)
    told = reads.points(metric, asked.cursor, asked.limit, asked.columns())
    return HttpResponse(told, content_type="application/json")


def metrics_page(run: Run, asked: Cursor, until: int | None) -> dict[str, Any]:
    """What `list_metrics` answers of a run that one may see."""
    metrics = reads.metrics_of(run)
    if until is None:
        return {**page(metrics, "metrics", asked), "state": run.state}
    return {"metrics": known_metrics(run, until), "next": None}


def bucketed(run: Run, name: str, asked: RangeIn, until: int | None) -> dict[str, Any]:
    """What `get_metric` answers of a run that one may see; raises `Http404` for no such series."""
    return reads.buckets(_metric(run, name, until), asked.asked(until))


def _metric(run: Run, name: str, until: int | None) -> Metric:
    reads.metrics_of(run)
    found = None if "\0" in name else metric_or_none(run, name, until)
    if found is None:
        raise Http404
    return found
