"""Reads of shares and of what a share shows."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from webapp.experiments.models import Run
from webapp.experiments.presentation import page_data
from webapp.http.rate_limits import address_of, count_guess
from webapp.searches.presentation import page_search
from webapp.sharing.comparisons import SharedComparison, shared_comparison
from webapp.sharing.models import Share
from webapp.sharing.services import Guest, guest_by
from webapp.telemetry import guests
from webapp.telemetry.selectors import folded
from webapp.telemetry.stream.view import EMPTY_STATUS, View

_OF_AGENTS = ("name", "parameters", "trainable", "owner", "role", "drafts")


def shares_of(run: Run) -> QuerySet[Share]:
    """Active links to the run, newest first. Callers have checked who may see the run."""
    return Share.objects.valid().filter(run=run).select_related("created_by").order_by("-pk")


def guest_or_404(request: HttpRequest, secret: str) -> Guest:
    """The guest whom the secret admits; counts a wrong secret. Raises `Http404`, `TooMany`."""
    if guest := guest_by(secret):
        return guest
    count_guess(address_of(request))
    raise Http404


def comparison_or_404(request: HttpRequest, secret: str) -> SharedComparison:
    """What the link of a comparison shows; counts a wrong secret. Raises as above."""
    try:
        return shared_comparison(secret)
    except Http404:
        count_guess(address_of(request))
        raise


def shared_page_data(guest: Guest) -> dict[str, Any]:
    """`page_data` of the run restricted to what the share shows (`telemetry.guests`): no sources of
    models or problems, no later moment, no address of anything but itself."""
    run, view = guest.share.run, guest.view
    data = page_data(run, can_operate=False)
    secret = view.base.rsplit("/", 1)[1]
    urls = {name: href.replace(f"/api/v1/runs/{run.pk}", view.base) for name, href in
            data["urls"].items() if name not in ("stop", "resume", "logged")}  # fmt: skip
    agents = [{name: agent[name] for name in _OF_AGENTS} for agent in data["agents"]]
    return {
        **{name: data[name] for name in ("run", "states", "verdicts", "figures", "formula")},
        "search": page_search(run),
        "status": _status(run, view, data),
        "agents": [{**agent, "model": agent["name"], "version": None} for agent in agents],
        "config": {n: data["config"][n] for n in ("search", "credit") if n in data["config"]},
        "urls": {
            **urls,
            "stream": f"/stream?share={secret}",
            "metrics": None if view.tree is not None else urls["metrics"],
        },
    }


def _status(run: Run, view: View, data: dict[str, Any]) -> dict[str, Any]:
    if view.until is None:
        return view.status(data["status"])
    state = folded(run, view.until)
    return {
        **EMPTY_STATUS,
        "state": state["run"]["state"],
        "step": state["step"],
        "steps": state["plan"]["steps"],
    }


def shared_variant(run: Run) -> dict[str, Any]:
    """Returns those settings that distinguish the run in its experiment that a guest may see."""
    return {path: value for path, value in run.variant.items() if guests.shows_setting(path)}
