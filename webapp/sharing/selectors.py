"""Reads of shares and of what a share shows."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from webapp.experiments.models import Run
from webapp.experiments.presentation import page_data
from webapp.http.rate_limits import address_of, count_guess
from webapp.searches.presentation import page_search
from webapp.sharing.comparisons import Shown, shown_by
from webapp.sharing.models import Share
from webapp.sharing.services import Guest, guest_by
from webapp.telemetry.selectors import folded
from webapp.telemetry.stream.view import EMPTY_STATUS, View


def shares_of(run: Run) -> QuerySet[Share]:
    """Active links to the run, newest first. Callers have checked who may see the run."""
    return Share.objects.valid().filter(run=run).select_related("created_by").order_by("-pk")


def guest_or_404(request: HttpRequest, secret: str) -> Guest:
    """The guest whom the secret admits; counts a wrong secret. Raises `Http404`, `TooMany`."""
    if guest := guest_by(secret):
        return guest
    count_guess(address_of(request))
    raise Http404


def comparison_or_404(request: HttpRequest, secret: str) -> Shown:
    """What the link of a comparison shows; counts a wrong secret. Raises as above."""
    try:
        return shown_by(secret)
    except Http404:
        count_guess(address_of(request))
        raise


def shared_page_data(guest: Guest) -> dict[str, Any]:
    """`page_data` of the run restricted to what the share shows: no sources of models or problems,
    no later moment, no address of anything but itself."""
    run, view = guest.share.run, guest.view
    told = page_data(run, can_operate=False)
    secret = view.base.rsplit("/", 1)[1]
    moved = {name: href.replace(f"/api/v1/runs/{run.pk}", view.base) for name, href in
             told["urls"].items() if name not in ("stop", "resume")}  # fmt: skip
    return {
        **told,
        "search": page_search(run),
        "status": told["status"] if view == View(view.base) else _status(run, view, told),
        "agents": [{**agent, "model": agent["name"], "version": None} for agent in told["agents"]],
        "config": {name: told["config"][name] for name in ("search", "credit")},
        "urls": {
            **moved,
            "stream": f"/stream?share={secret}",
            "metrics": None if view.tree is not None else moved["metrics"],
        },
    }


def _status(run: Run, view: View, told: dict[str, Any]) -> dict[str, Any]:
    if view.until is None:
        return view.status(told["status"])
    then = folded(run, view.until)
    return {
        **EMPTY_STATUS,
        "state": then["run"]["state"],
        "step": then["step"],
        "steps": then["plan"]["steps"],
    }
