"""What REST takes and tells of what runs report."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from engine.events import KINDS, RunState
from webapp.paging import LARGEST_ID, Cursor
from webapp.problems import Invalid
from webapp.telemetry import series
from webapp.telemetry.known import Known
from webapp.telemetry.models import Metric
from webapp.telemetry.outside import MOST_EVENTS

Seq = Annotated[int | None, Field(ge=1, le=LARGEST_ID)]
"""Of the last event that counts; none is the newest."""

EVENT = {
    "type": "array",
    "title": "seq, milliseconds since 1970, kind, payload",
    "items": {"type": ["integer", "string", "object"]},
    "minItems": 4,
    "maxItems": 4,
    "examples": [[1, 1790000000000, "step.start", {"step": 1}]],
}
STATE = {
    "type": "object",
    "properties": {
        "epoch": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer"},
        "events": {"type": "array", "items": EVENT},
    },
    "required": ["epoch", "seq", "events"],
}


LINE = {
    "type": "object",
    "properties": {
        "seq": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
        "time": {"type": "number", "minimum": 0, "maximum": 4e9, "title": "Unix seconds"},
        "kind": {"type": "string", "enum": list(KINDS)},
        "tree": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**63 - 1},
        "node": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
        "payload": {"type": "object"},
    },
    "required": ["seq", "time", "kind", "tree", "node", "payload"],
}
BATCH = {
    "type": "object",
    "properties": {"events": {"type": "array", "items": LINE, "maxItems": MOST_EVENTS}},
    "required": ["events"],
    "additionalProperties": False,
    "examples": [
        {
            "events": [
                {
                    "seq": 1,
                    "time": 1790000000.5,
                    "kind": "log.line",
                    "tree": None,
                    "node": None,
                    "payload": {"level": "info", "message": "hello from elsewhere"},
                }
            ]
        }
    ],
}


NUMBERS = {"type": "array", "items": {"type": "number"}}
POINTS = {
    "type": "object",
    "properties": {
        "points": {
            "type": "object",
            "properties": {name: NUMBERS for name in series.POINT_FIELDS},
            "additionalProperties": False,
        },
        "next": {"type": ["integer", "null"]},
    },
    "required": ["points", "next"],
    "examples": [{"points": {"step": [1, 2], "value": [0.25, 0.5]}, "next": 1}],
}


class Heard(Schema):
    """What an engine elsewhere is told."""

    head_seq: int
    """Every event up to it is stored; the next one has one more."""
    state: RunState
    stop_requested: bool
    """Whether it should make a checkpoint and say run.state stopped."""


Payload = dict[str, Any]


class Folded(Schema):
    """What a log comes to, as `static/js/fold.js` names it; times are milliseconds."""

    epoch: uuid.UUID
    seq: int
    time: int
    startedAt: int
    run: Payload
    plan: Payload
    step: int
    stepStartedAt: int
    steps: list[Payload]
    updates: list[Payload]
    evaluations: list[Payload]
    checkpoints: list[Payload]
    answer: Payload | None
    trees: list[Payload]
    """Of the last two steps."""
    waiting: Payload | None
    error: Payload | None
    logs: list[Payload]
    system: list[Payload]
    resumes: int


class Place(Schema):
    seq: int
    tree: int
    node: int


class Moments(Schema):
    head: int
    first_solved: Place | None


class NodeDetail(Schema):
    """Payloads of what was said about a node; null is what was not said yet."""

    tree: int
    node: int
    open: Payload
    close: Payload | None
    credit: Payload | None
    text: Payload | None
    learned: Payload | None
    """What an update saw of its tokens: {agent, step, version, entropy, ratio}."""
    problem: Payload | None
    parent: Payload | None
    """Its parent's `close`; null for a child of the root."""


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
    x: series.Axis
    from_: float = Field(alias="from")
    to: float
    points: int
    """Points in the range: each is in exactly one bucket."""
    buckets: Buckets


class RangeIn(Schema):
    x: series.Axis = series.Axis.STEP
    from_: float | None = Field(None, alias="from", ge=-1e15, le=1e15, allow_inf_nan=False)
    to: float | None = Field(None, ge=-1e15, le=1e15, allow_inf_nan=False)
    points: int = Field(600, ge=1, le=4000)
    scale: series.Scale = series.Scale.LINEAR
    until: Seq = None

    def asked(self, until: int | None) -> series.Range:
        """As it was known after event `until`; raises `Invalid` for a range without an inside."""
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise Invalid("from", self.from_, f"give one that is not above `to`, {self.to}")
        return series.Range(self.x, self.from_, self.to, self.points, self.scale, until)


class PointsIn(Schema):
    cursor: int | None = Field(None, ge=0, lt=2**63)
    """`next` of the page before."""
    limit: int = Field(1000, ge=1, le=100_000)
    fields: str = Field(",".join(series.POINT_FIELDS), max_length=100, pattern=r"^[^\x00]*$")
    """Names of columns, with commas between them."""

    def columns(self) -> list[str]:
        """Raises `Invalid` for a column that there is not."""
        asked = [name.strip() for name in self.fields.split(",")]
        for name in asked:
            if name not in series.POINT_FIELDS:
                raise Invalid("fields", name, f"give some of {', '.join(series.POINT_FIELDS)}")
        return list(dict.fromkeys(asked))


class StepOut(Schema):
    seq: int
    step: int
    seconds: float
    phases: dict[str, float]
    waits: dict[str, float]
    """Seconds by the name of what was waited for."""


class StepList(Schema):
    steps: list[StepOut]
    next: int | None


class LogLineOut(Schema):
    seq: int
    time: datetime
    level: str
    message: str


class LogLineList(Schema):
    lines: list[LogLineOut]
    next: int | None


class Backwards(Schema):
    cursor: int | None = Field(None, ge=0, lt=2**63)
    """`next` of the page before, which is of newer things."""
    limit: int = Field(50, ge=1, le=500)


class LinesIn(Backwards):
    level: list[Literal["debug", "info", "warning", "error"]] = Field([], max_length=4)
    q: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    """What stands in the message, in any case."""
