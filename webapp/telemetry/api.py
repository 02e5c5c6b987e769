"""REST of what runs report: the state to start from, the log, one node."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from webapp.experiments.selectors import visible_run
from webapp.telemetry import selectors

router = Router()


@router.get("/{uuid:run_id}/state")
def get_state(
    request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """{epoch, seq, events: [[seq, t_ms, kind, payload], ...]}: the compacted log up to `seq`."""
    run = visible_run(request.user, run_id)
    return HttpResponse(selectors.state(run, seq), content_type="application/json")


@router.get("/{uuid:run_id}/events")
def get_events(
    request: HttpRequest, run_id: uuid.UUID, after: int = Query(0, ge=0)
) -> HttpResponse:
    """NDJSON: the events after `after` that are stored now, [seq, t_ms, kind, payload] per line."""
    run = visible_run(request.user, run_id)
    return StreamingHttpResponse(selectors.lines(run, after), content_type="application/x-ndjson")


@router.get("/{uuid:run_id}/trees/{int:tree}/nodes/{int:node}", response=dict)
def get_node(request: HttpRequest, run_id: uuid.UUID, tree: int, node: int):
    """{tree, node, open, close, credit, problem, parent}: the payloads about a node, its problem,
    and its parent's `node.close` (null for a child of the root)."""
    found = selectors.node(visible_run(request.user, run_id), tree, node)
    if found is None:
        raise Http404
    return found
