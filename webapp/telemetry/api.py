"""REST of what runs report: the state to start from, the log, trees of any step, one node."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from webapp.experiments.selectors import visible_run
from webapp.telemetry import selectors

router = Router()

_EVENT = {
    "type": "array",
    "prefixItems": [
        {"type": "integer", "title": "seq"},
        {"type": "integer", "title": "t_ms"},
        {"type": "string", "title": "kind"},
        {"type": "object", "title": "payload"},
    ],
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


@router.get("/{uuid:run_id}/folded", response=dict)
def get_folded(request: HttpRequest, run_id: uuid.UUID, seq: int | None = Query(None, ge=0)):
    """state(seq): all that the log up to `seq` (its head if there is none) comes to, as the run
    page folds it: plan, steps, updates, evaluations, and the trees of the last two steps."""
    return selectors.folded(visible_run(request.user, run_id), seq)


@router.get("/{uuid:run_id}/moments", response=dict)
def get_moments(request: HttpRequest, run_id: uuid.UUID):
    """{head, first_solved: {seq, tree, node} | null}: places in the log to jump to."""
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
    payload] per line. `topics`: as in a subscription (`*,-node.text`), with commas between them."""
    run = visible_run(request.user, run_id)
    lines = selectors.lines(run, after, until, topics.split(","))
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")


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


@router.get("/{uuid:run_id}/trees/{int:tree}", openapi_extra=_answers("application/json", _STATE))
def get_tree(
    request: HttpRequest, run_id: uuid.UUID, tree: int, seq: int | None = Query(None, ge=0)
) -> HttpResponse:
    """{epoch, seq, events}: all that was said of one tree up to `seq`, without `node.text`."""
    found = selectors.tree(visible_run(request.user, run_id), tree, seq)
    if found is None:
        raise Http404
    return HttpResponse(found, content_type="application/json")


@router.get("/{uuid:run_id}/trees/{int:tree}/nodes/{int:node}", response=dict)
def get_node(request: HttpRequest, run_id: uuid.UUID, tree: int, node: int):
    """{tree, node, open, text, close, credit, learned, problem, parent}: the payloads about a node,
    what an update saw of its tokens {agent, step, version, entropy, ratio} (null before one), its
    problem, and its parent's `node.close` (null for a child of the root)."""
    found = selectors.node(visible_run(request.user, run_id), tree, node)
    if found is None:
        raise Http404
    return found
