"""REST of a run's log: its state at an event, its events, trees, nodes and steps."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from webapp.experiments.external_engines import Ended, NotExternalRun
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.experiments.tracked_runs import head_of
from webapp.http.rate_limits import address_of
from webapp.projects.permissions import Action, require
from webapp.rest.problem_details import problem
from webapp.telemetry import selectors, steps
from webapp.telemetry.api.schemas import (
    STATE,
    Backwards,
    Folded,
    Heard,
    LinesIn,
    LoggedIn,
    LoggedList,
    LogLineList,
    Moments,
    NodeDetail,
    StepList,
)
from webapp.telemetry.ingest.batch_schema import BATCH
from webapp.telemetry.ingest.external_engines import Gap, WrongSession, read_batch, store_batch
from webapp.telemetry.stream import tail
from webapp.telemetry.stream.stream_slots import RETRY_SECONDS, TooManyStreams, take_slot

router = Router()


def answers(media: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the OpenAPI entry of a response that has no schema class."""
    return {"responses": {200: {"content": {media: {"schema": schema}}}}}


@router.get("/{uuid:run_id}/state", openapi_extra=answers("application/json", STATE))
def get_state(
    request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """Returns {epoch, seq, events: [[seq, t_ms, kind, payload], ...]}: the compacted log up to
    `seq`."""
    run = visible_run(request.user, run_id)
    return HttpResponse(selectors.state(run, seq), content_type="application/json")


@router.get("/{uuid:run_id}/folded", response=Folded)
def get_folded(request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)):
    """Returns state(seq), the fold of the log up to `seq` (default: its head), as on the run page:
    plan, steps, updates, evaluations, and the trees of the last two steps."""
    return selectors.folded(visible_run(request.user, run_id), seq)


@router.get("/{uuid:run_id}/moments", response=Moments)
def get_moments(request: HttpRequest, run_id: uuid.UUID):
    """Returns positions in the log to jump to: its head, and the first solved node."""
    run = visible_run(request.user, run_id)
    return {"head": run.head_seq, "first_solved": selectors.first_solved(run)}


@router.get(
    "/{uuid:run_id}/events",
    openapi_extra=answers("application/x-ndjson", {"type": "string", "title": "one event a line"}),
)
def get_events(
    request: HttpRequest,
    run_id: uuid.UUID,
    after: int = Query(0, ge=0),
    until: int | None = Query(None, ge=0),
    topics: str = Query("*", max_length=400),
) -> HttpResponse:
    """Returns the stored events after `after`, up to `until`, as NDJSON, [seq, t_ms, kind, payload]
    per line. `topics`: as in a subscription (`*,-node.text`), separated by commas. A request that
    accepts text/event-stream also receives new events until the run has ended; `after` is then the
    Last-Event-ID, if the request has one."""
    run = visible_run(request.user, run_id)
    if tail.MEDIA_TYPE in request.headers.get("Accept", ""):
        return _tail(request, run, after, topics.split(","))
    lines = selectors.lines(run, after, until, topics.split(","))
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")


@router.post(
    "/{uuid:run_id}/events",
    response=Heard,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": BATCH}}}
    },
)
def add_events(request: HttpRequest, run_id: uuid.UUID):
    """Stores lines of the log of a run with an external engine (`outside`), in order of seq, each
    once however often it is sent. Events that leave a gap are refused (409) with `expected_seq`.
    The response has the seq of the last one and whether the engine should stop; an empty batch only
    renews the lease, which lapses after 15 minutes."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.REPORT, run.project)
    try:
        run = store_batch(run_id, read_batch(request.body))
        return {
            "head_seq": head_of(run), "state": run.state, "stop_requested": run.stop_requested,
        }  # fmt: skip
    except Gap as gap:
        return problem(409, f"{gap}.", expected_seq=gap.expected)
    except NotExternalRun:
        return problem(409, "An engine of this server has the run: its worker sends its events.")
    except WrongSession as refusal:
        return problem(409, str(refusal))
    except Ended:
        return problem(409, "The run has ended and accepts no more events; resume it first.")


@router.get(
    "/{uuid:run_id}/steps/{int:step}/trees", openapi_extra=answers("application/json", STATE)
)
def get_step_trees(
    request: HttpRequest, run_id: uuid.UUID, step: int, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """Returns {epoch, seq, events}: all events of the trees of one step up to `seq`, without
    `node.text`; empty if the step has none."""
    body = selectors.step(visible_run(request.user, run_id), step, seq)
    return HttpResponse(body, content_type="application/json")


def _tail(request: HttpRequest, run: Run, after: int, topics: list[str]) -> HttpResponse:
    """Streams the growing log; 429 if the caller or the address is at its limit of streams."""
    last = request.headers.get("Last-Event-ID", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        after = int(last)
    try:
        slot = take_slot(request.user, address_of(request))
    except TooManyStreams as refused:
        refusal = problem(429, str(refused))
        refusal.headers["Retry-After"] = str(RETRY_SECONDS)
        return refusal
    frames = slot.streamed(tail.server_sent_events(request, run, after, topics))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(frames, content_type=tail.MEDIA_TYPE, headers=headers)


@router.get("/{uuid:run_id}/trees/{int:tree}", openapi_extra=answers("application/json", STATE))
def get_tree(
    request: HttpRequest, run_id: uuid.UUID, tree: int, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """Returns {epoch, seq, events}: all events of one tree up to `seq`, without `node.text`."""
    body = selectors.tree(visible_run(request.user, run_id), tree, seq)
    if body is None:
        raise Http404
    return HttpResponse(body, content_type="application/json")


@router.get("/{uuid:run_id}/trees/{int:tree}/nodes/{int:node}", response=NodeDetail)
def get_node(request: HttpRequest, run_id: uuid.UUID, tree: int, node: int):
    """Returns all events of a node, its problem, and its parent's `node.close`."""
    events = selectors.node(visible_run(request.user, run_id), tree, node)
    if events is None:
        raise Http404
    return events


@router.get("/{uuid:run_id}/logged", response=LoggedList)
def list_logged(request: HttpRequest, run_id: uuid.UUID, query: Query[LoggedIn]):
    """Lists the texts, tables, histograms, images or numbers that are not finite, which a program
    logged under one name, newest first."""
    run = visible_run(request.user, run_id)
    return selectors.logged(run, query.kind, query.name, query.cursor, query.limit)


@router.get("/{uuid:run_id}/steps", response=StepList)
def list_steps(request: HttpRequest, run_id: uuid.UUID, query: Query[Backwards]):
    """Lists the seconds of each step by phase and by wait, newest first."""
    run = visible_run(request.user, run_id)
    return steps.steps(run, query.cursor, query.limit)


@router.get("/{uuid:run_id}/logs", response=LogLineList)
def list_log_lines(request: HttpRequest, run_id: uuid.UUID, query: Query[LinesIn]):
    """Lists the log lines of the run, newest first."""
    run = visible_run(request.user, run_id)
    result = steps.log_lines(run, query.cursor, query.limit, query.level, query.q)
    return {**result, "state": run.state}
