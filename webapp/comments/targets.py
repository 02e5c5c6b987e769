"""Targets of comments and their addresses.

A target is a run, a node of one of its trees, or a comparison of runs. Invariant: it consists only
of runs that the requesting user may see, and of nodes that exist.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse

from webapp.accounts.models import User
from webapp.comments.models import Comment
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.projects.models import Project
from webapp.telemetry.models import Event

MOST_RUNS = 8
"""Maximum number of runs in one comparison."""


@dataclass(frozen=True)
class Target:
    runs: tuple[Run, ...]
    """By id; several are a comparison."""
    tree: int | None = None
    node: int | None = None

    @property
    def comparison(self) -> str:
        """As `Comment.comparison` stores it."""
        return ",".join(str(run.pk) for run in self.runs) if len(self.runs) > 1 else ""

    @property
    def projects(self) -> set[Project]:
        return {run.project for run in self.runs}

    def thread(self) -> QuerySet[Comment]:
        """The comments on the target. A user for whom the target was made may see them."""
        return Comment.objects.filter(
            run=self.runs[0], tree=self.tree, node=self.node, comparison=self.comparison
        )

    def address(self) -> str:
        return _address([run.pk for run in self.runs], self.tree, self.node)

    def __str__(self) -> str:
        if self.comparison:
            return " and ".join(str(run) for run in self.runs)
        where = "" if self.node is None else f"node {self.node} of tree {self.tree} of "
        return f"{where}{self.runs[0]}"


def find_target(
    user: User, run_ids: Sequence[uuid.UUID], tree: int | None = None, node: int | None = None
) -> Target:
    """Returns the target; raises `Http404` if a part of it does not exist for `user`."""
    runs = tuple(visible_run(user, run_id) for run_id in sorted(set(run_ids)))
    if not 1 <= len(runs) <= MOST_RUNS or (tree is None) != (node is None):
        raise Http404
    if node is not None:
        opened = Event.objects.filter(run=runs[0], tree=tree, node=node, kind="node.open")
        if len(runs) > 1 or not opened.exists():
            raise Http404
    return Target(runs, tree, node)


def target_of(comment: Comment, user: User) -> Target:
    """The target of a comment that `user` may see."""
    return find_target(user, run_ids_of(comment), comment.tree, comment.node)


def run_ids_of(comment: Comment) -> list[uuid.UUID]:
    if not comment.comparison:
        return [comment.run_id]
    return [uuid.UUID(one) for one in comment.comparison.split(",")]


def address_of(comment: Comment) -> str:
    """Address of the comment in its thread."""
    return f"{_address(run_ids_of(comment), comment.tree, comment.node)}#comment-{comment.pk}"


def _address(run_ids: Sequence[uuid.UUID], tree: int | None, node: int | None) -> str:
    parameters: list[tuple[str, object]] = [("run", run_id) for run_id in run_ids]
    if node is not None:
        parameters += [("tree", tree), ("node", node)]
    return f"{reverse('comments')}?{urlencode(parameters)}"
