"""REST of shares: creating and revoking links, and the data of a guest's page.

Below /shared the secret in the address is the only credential; it grants reads and nothing else.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from webapp.experiments.selectors import visible_run
from webapp.projects.permissions import Action, require
from webapp.rest.json_types import Integer, integer
from webapp.rest.pagination import Cursor, page
from webapp.rest.problem_details import Invalid
from webapp.sharing import services
from webapp.sharing.models import Share
from webapp.sharing.selectors import guest_or_404, shares_of
from webapp.telemetry import selectors
from webapp.telemetry.api.metrics import (
    BucketedSeries,
    MetricList,
    MetricsIn,
    RangeIn,
    bucketed,
    metrics_page,
)

router = Router()
shared = Router(auth=None)

_LARGEST = 2**63 - 1


class ShareIn(Schema):
    tree: integer(ge=0, le=_LARGEST) | None = None
    """The one tree to show; null shows the whole run."""
    until: integer(ge=1, le=_LARGEST) | None = None
    """Seq of the last event to show; null is live."""
    days: Integer = Field(7, ge=1, le=90)


class ShareOut(Schema):
    id: int
    tree: int | None
    until: int | None
    created: datetime
    expires: datetime


class NewShare(ShareOut):
    link: str
    """Shown once: only its digest is stored."""


class ShareList(Schema):
    shares: list[ShareOut]
    next: int | None
    """Cursor of the next page, null on the last."""


@router.get("/{uuid:run_id}/shares", response=ShareList)
def list_shares(request: HttpRequest, run_id: uuid.UUID, query: Query[Cursor]):
    """Lists the run's active links."""
    return page(shares_of(visible_run(request.user, run_id)), "shares", query)


@router.post("/{uuid:run_id}/shares", response={201: NewShare})
def create_share(request: HttpRequest, run_id: uuid.UUID, new: ShareIn):
    """Creates a link by which anybody may view the run, or one tree of it, without an account."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.SHARE, run.project)
    lifetime = timedelta(days=new.days)
    try:
        made, path = services.create_share(run, request.user, lifetime, new.tree, new.until)
    except services.ShareRefused as refusal:
        at = "until" if str(refusal).startswith("event") else "tree"
        raise Invalid(at, getattr(new, at), str(refusal), 404) from None
    made.link = request.build_absolute_uri(path)
    return Status(201, made)


@router.delete("/{uuid:run_id}/shares/{int:share_id}", response={204: None})
def revoke_share(request: HttpRequest, run_id: uuid.UUID, share_id: int):
    """Revokes the link: it shows nothing any more, and pages opened by it are disconnected."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.SHARE, run.project)
    services.revoke_share(get_object_or_404(Share.objects.filter(run=run), pk=share_id))
    return Status(204, None)


@shared.get("/{str:secret}/state", include_in_schema=False)
def get_shared_state(request: HttpRequest, secret: str, seq: int | None = Query(None, ge=0)):
    guest = guest_or_404(request, secret)
    run, view = guest.share.run, guest.view
    if view.tree is not None:
        return _json(
            selectors.tree(run, view.tree, view.clamp(seq), view) or _unopened_tree(run, view, seq)
        )
    return _json(selectors.state(run, view.clamp(seq), view))


def _unopened_tree(run: services.Run, view: selectors.View, seq: int | None) -> bytes:
    """The state before the tree was opened."""
    at = view.clamp(seq if seq is not None else run.head_seq)
    return b'{"epoch":"%s","seq":%d,"events":[]}' % (str(run.epoch).encode(), at)


@shared.get("/{str:secret}/moments", include_in_schema=False)
def get_shared_moments(request: HttpRequest, secret: str):
    guest = guest_or_404(request, secret)
    run, view = guest.share.run, guest.view
    return {"head": view.clamp(run.head_seq), "first_solved": selectors.first_solved(run, view)}


@shared.get("/{str:secret}/events", include_in_schema=False)
def get_shared_events(
    request: HttpRequest,
    secret: str,
    after: int = Query(0, ge=0),
    until: int | None = Query(None, ge=0),
    topics: str = Query("*", max_length=400),
):
    guest = guest_or_404(request, secret)
    lines = selectors.lines(guest.share.run, after, until, topics.split(","), guest.view)
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")


@shared.get("/{str:secret}/steps/{int:step}/trees", include_in_schema=False)
def get_shared_step(
    request: HttpRequest, secret: str, step: int, seq: int | None = Query(None, ge=0)
):
    guest = _guest_of_whole_run(request, secret)
    return _json(selectors.step(guest.share.run, step, guest.view.clamp(seq), guest.view))


@shared.get("/{str:secret}/trees/{int:tree}", include_in_schema=False)
def get_shared_tree(
    request: HttpRequest, secret: str, tree: int, seq: int | None = Query(None, ge=0)
):
    guest = guest_or_404(request, secret)
    view, run = guest.view, guest.share.run
    seen = view.tree in (None, tree)
    state = selectors.tree(run, tree, view.clamp(seq), view) if seen else None
    if state is None:
        raise Http404
    return _json(state)


@shared.get("/{str:secret}/trees/{int:tree}/nodes/{int:node}", include_in_schema=False)
def get_shared_node(request: HttpRequest, secret: str, tree: int, node: int):
    guest = guest_or_404(request, secret)
    seen = guest.view.tree in (None, tree)
    detail = selectors.node(guest.share.run, tree, node, guest.view) if seen else None
    if detail is None:
        raise Http404
    return detail


@shared.get("/{str:secret}/metrics", response=MetricList, include_in_schema=False)
def get_shared_metrics(request: HttpRequest, secret: str, query: Query[MetricsIn]):
    guest = _guest_of_whole_run(request, secret)
    listed = metrics_page(guest.share.run, query, guest.view.clamp(query.until))
    shown = [one for one in listed["metrics"] if guest.view.shows_series(one.name)]
    return listed | {"metrics": shown}


@shared.get(
    "/{str:secret}/metrics/{name}", response=BucketedSeries, by_alias=True, include_in_schema=False
)
def get_shared_metric(request: HttpRequest, secret: str, name: str, query: Query[RangeIn]):
    guest = _guest_of_whole_run(request, secret)
    if not guest.view.shows_series(name):
        raise Http404
    return bucketed(guest.share.run, name, query, guest.view.clamp(query.until))


def _guest_of_whole_run(request: HttpRequest, secret: str) -> services.Guest:
    """Steps and series cover the whole run: a guest who sees only one tree of it gets 404."""
    guest = guest_or_404(request, secret)
    if guest.view.tree is not None:
        raise Http404
    return guest


def _json(content: bytes) -> HttpResponse:
    return HttpResponse(content, content_type="application/json")
