"""REST of what runs report: the state to start from, the log, trees, nodes, series of numbers."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from engine.events import KINDS, RunState
from webapp.experiments.models import Run
from webapp.experiments.outside import Ended, NotOutside
from webapp.experiments.selectors import visible_run
from webapp.paging import Cursor, page
from webapp.problems import Invalid, problem
from webapp.projects.permissions import Action, require
from webapp.telemetry import selectors, series, steps, tail
from webapp.telemetry.models import Metric
from webapp.telemetry.outside import MOST_EVENTS, Gap, read_batch, store_batch

router = Router()

_EVENT = {
    "type": "array",
    "title": "seq, milliseconds since 1970, kind, payload",
    "items": {"type": ["integer", "string", "object"]},
    "minItems": 4,
    "maxItems": 4,
    "examples": [[1, 1790000000000, "step.start", {"step": 1}]],
}
_STATE = {
    "type": "object",
    "properties": {
        "epoch": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer"},
        "events": {"type": "array", "items": _EVENT},
    },
    "required": ["epoch", "seq", "events"],
}


_LINE = {
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
_BATCH = {
    "type": "object",
    "properties": {"events": {"type": "array", "items": _LINE, "maxItems": MOST_EVENTS}},
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


_NUMBERS = {"type": "array", "items": {"type": "number"}}
_POINTS = {
    "type": "object",
    "properties": {
        "points": {
            "type": "object",
            "properties": {name: _NUMBERS for name in series.POINT_FIELDS},
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
    def resolve_last(metric: Metric) -> Metric:
        return metric


class MetricList(Schema):
    metrics: list[MetricOut]
    next: int | None


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

    def asked(self) -> series.Range:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise Invalid("from", self.from_, f"give one that is not above `to`, {self.to}")
        return series.Range(self.x, self.from_, self.to, self.points, self.scale)


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


def _answers(media: str, schema: dict[str, Any]) -> dict[str, Any]:
    """What the document says of an answer that is made without a model."""
    return {"responses": {200: {"content": {media: {"schema": schema}}}}}


@router.get("/{uuid:run_id}/state", openapi_extra=_answers("application/json", _STATE))
def get_state(
    request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """{epoch, seq, events: [[seq, t_ms, kind, payload], ...]}: the compacted log up to `seq`."""
    run = visible_run(request.user, run_id)
    return HttpResponse(selectors.state(run, seq), content_type="application/json")


@router.get("/{uuid:run_id}/folded", response=Folded)
def get_folded(request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)):
    """state(seq): all that the log up to `seq` (its head if there is none) comes to, as the run
    page folds it: plan, steps, updates, evaluations, and the trees of the last two steps."""
    return selectors.folded(visible_run(request.user, run_id), seq)


@router.get("/{uuid:run_id}/moments", response=Moments)
def get_moments(request: HttpRequest, run_id: uuid.UUID):
    """Places in the log to jump to."""
    run = visible_run(request.user, run_id)
    return {"head": run.head_seq, "first_solved": selectors.first_solved(run)}


@router.get(
    "/{uuid:run_id}/events",
    openapi_extra=_answers("application/x-ndjson", {"type": "string", "title": "one event a line"}),
)
def get_events(
    request: HttpRequest,
    run_id: uuid.UUID,
    after: int = Query(0, ge=0),
    until: int | None = Query(None, ge=0),
    topics: str = Query("*", max_length=400),
) -> HttpResponse:
    """NDJSON: the events after `after`, up to `until`, that are stored now, [seq, t_ms, kind,
    payload] per line. `topics`: as in a subscription (`*,-node.text`), with commas between them.
    Who asks for text/event-stream is also sent what comes, until the run has ended; `after` is then
    the Last-Event-ID, if there is one."""
    run = visible_run(request.user, run_id)
    if tail.MEDIA_TYPE in request.headers.get("Accept", ""):
        return _tail(request, run, after, topics.split(","))
    lines = selectors.lines(run, after, until, topics.split(","))
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")


@router.post(
    "/{uuid:run_id}/events",
    response=Heard,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": _BATCH}}}
    },
)
def add_events(request: HttpRequest, run_id: uuid.UUID):
    """For a run whose engine runs elsewhere (`outside`): lines of its log, in order of seq, each
    stored once however often it is sent. Events that leave a gap are refused (409) with
    `expected_seq`. The answer says where the log stands and what is asked of the engine; none of
    events at all are a sign of life, of which one is due every 15 minutes."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.REPORT, run.project)
    try:
        return store_batch(run_id, read_batch(request.body))
    except Gap as gap:
        return problem(409, f"{gap}.", expected_seq=gap.expected)
    except NotOutside:
        return problem(409, "An engine of this server has the run: its worker sends its events.")
    except Ended:
        return problem(409, "The run has ended and takes no more events; resume it first.")


@router.get(
    "/{uuid:run_id}/steps/{int:step}/trees", openapi_extra=_answers("application/json", _STATE)
)
def get_step_trees(
    request: HttpRequest, run_id: uuid.UUID, step: int, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """{epoch, seq, events}: all that was said of the trees of one step up to `seq`, without
    `node.text`; no event where the step has none."""
    found = selectors.step(visible_run(request.user, run_id), step, seq)
    return HttpResponse(found, content_type="application/json")


def _tail(request: HttpRequest, run: Run, after: int, topics: list[str]) -> HttpResponse:
    last = request.headers.get("Last-Event-ID", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        after = int(last)
    said = tail.server_sent_events(request.user, run, after, topics)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(said, content_type=tail.MEDIA_TYPE, headers=headers)


@router.get("/{uuid:run_id}/trees/{int:tree}", openapi_extra=_answers("application/json", _STATE))
def get_tree(
    request: HttpRequest, run_id: uuid.UUID, tree: int, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """{epoch, seq, events}: all that was said of one tree up to `seq`, without `node.text`."""
    found = selectors.tree(visible_run(request.user, run_id), tree, seq)
    if found is None:
        raise Http404
    return HttpResponse(found, content_type="application/json")


@router.get("/{uuid:run_id}/trees/{int:tree}/nodes/{int:node}", response=NodeDetail)
def get_node(request: HttpRequest, run_id: uuid.UUID, tree: int, node: int):
    """All that was said about a node, its problem, and how its parent ended."""
    found = selectors.node(visible_run(request.user, run_id), tree, node)
    if found is None:
        raise Http404
    return found


@router.get("/{uuid:run_id}/metrics", response=MetricList)
def list_metrics(request: HttpRequest, run_id: uuid.UUID, asked: Query[Cursor]):
    """Every series of numbers of the run, in the order in which they were first told, each with how
    many points it has and the newest."""
    run = visible_run(request.user, run_id)
    return page(series.metrics_of(run), "metrics", asked)


@router.get("/{uuid:run_id}/metrics/{name}", response=BucketedSeries, by_alias=True)
def get_metric(request: HttpRequest, run_id: uuid.UUID, name: str, asked: Query[RangeIn]):
    """One series from x = `from` to `to` in at most `points` buckets: least, greatest, mean and
    number of the points of each. None is left out. `scale=log` makes buckets of equal width in
    log x."""
    return series.buckets(_metric(request, run_id, name), asked.asked())


@router.get(
    "/{uuid:run_id}/metrics/{name}/points", openapi_extra=_answers("application/json", _POINTS)
)
def list_points(
    request: HttpRequest, run_id: uuid.UUID, name: str, asked: Query[PointsIn]
) -> HttpResponse:
    """The points themselves, page by page, in the order in which they were told: columns of equal
    length. `time` is seconds since the run's first event, `seq` that of the event."""
    metric = _metric(request, run_id, name)
    told = series.points(metric, asked.cursor, asked.limit, asked.columns())
    return HttpResponse(told, content_type="application/json")


@router.get("/{uuid:run_id}/steps", response=StepList)
def list_steps(request: HttpRequest, run_id: uuid.UUID, asked: Query[Backwards]):
    """Where the seconds of each step went and what it waited for, newest first."""
    run = visible_run(request.user, run_id)
    return steps.steps(run, asked.cursor, asked.limit)


@router.get("/{uuid:run_id}/logs", response=LogLineList)
def list_log_lines(request: HttpRequest, run_id: uuid.UUID, asked: Query[LinesIn]):
    """Lines of the run's log, newest first."""
    run = visible_run(request.user, run_id)
    return steps.log_lines(run, asked.cursor, asked.limit, asked.level, asked.q)


def _metric(request: HttpRequest, run_id: uuid.UUID, name: str) -> Metric:
    run = visible_run(request.user, run_id)
    if "\0" in name:
        raise Http404
    return get_object_or_404(series.metrics_of(run), name=name)
