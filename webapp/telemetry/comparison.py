"""Queries for the comparison of two trees of one problem. Callers have checked visibility."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_runs
from webapp.telemetry.models import Event

MOST_RUNS = 20
"""Newest runs of a project that are searched for trees of the same problem."""
MOST_CHOICES = 200


@dataclass(frozen=True)
class TreeReference:
    """A tree of a run, written RUN:TREE in addresses."""

    run: uuid.UUID
    tree: int

    @classmethod
    def parse(cls, text: str) -> TreeReference:
        """Parses RUN:TREE. Raises `ValueError` for any other text."""
        run, _, tree = text.partition(":")
        return cls(uuid.UUID(run), int(tree))

    def __str__(self) -> str:
        return f"{self.run}:{self.tree}"


def opened(run: Run, tree: int) -> dict[str, Any] | None:
    """Returns the payload of the tree's `tree.open`; None if the run has no such tree."""
    event = Event.objects.filter(run=run, tree=tree, kind="tree.open").first()
    return event.payload if event else None


def tree_data(run: Run, tree: int, payload: dict[str, Any]) -> dict[str, Any]:
    """Returns a tree for the comparison page, as plain JSON values."""
    return {
        "place": str(TreeReference(run.pk, tree)),
        "label": label(run, payload["step"]),
        "tree": tree,
        "step": payload["step"],
        "problem": payload["problem"],
        "statement": payload["statement"],
        "agents": [agent["name"] for agent in run.config.get("agents", ())],
        "url": f"/api/v1/runs/{run.pk}/trees/{tree}",
        "href": f"{reverse('run', args=[run.pk])}#tree={tree}",
    }


def label(run: Run, step: int) -> str:
    """Returns run and step, which identify the checkpoint whose weights wrote a tree."""
    return f"{run.experiment.name} #{run.number}, step {step}"


def others(user: User, run: Run, tree: int, problem: str) -> list[dict[str, str]]:
    """Returns {place, label} of other trees of the problem in the runs of the project that the user
    may see, those of this run first, newest first."""
    visible = visible_runs(user).filter(experiment__project=run.project)
    runs = [run, *(one for one in visible[: MOST_RUNS + 1] if one.pk != run.pk)][:MOST_RUNS]
    choices: list[dict[str, str]] = []
    for one in runs:
        choices += _of_problem(one, problem, tree if one.pk == run.pk else None)
    return choices[:MOST_CHOICES]


def _of_problem(run: Run, problem: str, without: int | None) -> Sequence[dict[str, str]]:
    events = Event.objects.filter(run=run, kind="tree.open", payload__problem=problem)
    trees = events.order_by("-seq").values_list("tree", "payload__step")[:MOST_CHOICES]
    return [
        {"place": str(TreeReference(run.pk, tree)), "label": f"{label(run, step)}, tree {tree}"}
        for tree, step in trees
        if tree != without
    ]
