"""Presentation of a search on pages and in REST, beyond that of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webapp.experiments.models import Run
from webapp.experiments.presentation import status_of
from webapp.searches.models import Search
from webapp.telemetry.models import Event


def page_search(run: Run) -> dict[str, Any] | None:
    """Returns the search's data on its run's page; None for a training run. It contains the number
    of tests, never the tests."""
    search = Search.objects.filter(run=run).first()
    if search is None:
        return None
    problem = search.problem
    return {
        "problem": problem["id"],
        "entry_point": problem["entry_point"],
        "public_tests": len(problem["public_tests"]),
        "private_tests": len(problem["private_tests"]),
        "budget": budget(run.config),
    }


def budget(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the limits of nodes, and of tokens and seconds if they are limited."""
    search = config["search"]
    return {name: search[f"{name}_per_tree"] for name in ("nodes", "tokens", "seconds")}


def summary(search: Search) -> dict[str, Any]:
    """Returns the search as in REST; `search` is from `selectors.visible_searches`."""
    run = search.run
    status = status_of(run)
    fields = (
        "state",
        "stop_requested",
        "error",
        "queued_at",
        "started_at",
        "finished_at",
        "waiting",
    )
    return {
        "id": run.pk,
        "name": run.experiment.name,
        "project": run.project.pk,
        "problem": search.problem_id,
        "dataset_version": str(run.dataset_version) if run.dataset_version else None,
        "team": [
            {"name": agent["name"], "model": agent["model"]} for agent in run.config["agents"]
        ],
        "budget": budget(run.config),
        "created": run.created,
        "created_by": run.created_by.username,
        "head_seq": run.head_seq,
        **{name: status[name] for name in fields},
        "answer": run.result.get("answer"),
    }


def answer_of(run: Run) -> dict[str, Any] | None:
    """Returns the whole answer with its program, or None while there is none."""
    event = Event.objects.filter(run=run, kind="search.answer").order_by("-seq").first()
    if event is None or run.result.get("answer") is None:
        return None
    return {**event.payload, "tree": event.tree, "node": event.node}
