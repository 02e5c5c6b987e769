"""REST of a run's trees, nodes and evaluations: filtered lists, ordered by id."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Path, Query, Router, Schema
from pydantic import Field

from engine.events.vocabulary import Verdict
from webapp.experiments.selectors import visible_run
from webapp.rest.pagination import LARGEST_ID, Cursor
from webapp.telemetry import forest

router = Router()

Tree = Annotated[int, Path(ge=0, le=LARGEST_ID)]


class TreeOut(Schema):
    tree: int
    step: int
    problem: str
    difficulty: int
    closed: bool
    nodes: int | None
    """Number of its nodes when it was closed."""
    solved: bool | None
    mean_score: float | None
    filtered: bool | None


class TreeList(Schema):
    trees: list[TreeOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class NodeOut(Schema):
    tree: int
    node: int
    agent: str
    parent: int
    depth: int
    verdict: Verdict | None
    score: float | None
    tokens: int | None
    seconds: float | None
    shaped: float | None
    advantage: float | None


class NodeList(Schema):
    nodes: list[NodeOut]
    next: int | None


class EvaluationList(Schema):
    evaluations: list[dict[str, Any]]
    """Payloads of `eval.result`, each with its `seq`."""
    next: int | None


class TreeFilter(Cursor):
    step: int | None = Field(None, ge=0, le=2**31 - 1)


class NodeFilter(Cursor):
    agent: str | None = Field(None, max_length=100, pattern=r"^[^\x00]*$")
    verdict: Verdict | None = None
    least_score: float | None = Field(None, ge=0, le=1)
    depth: int | None = Field(None, ge=1, le=2**31 - 1)


@router.get("/{uuid:run_id}/trees", response=TreeList)
def list_trees(request: HttpRequest, run_id: uuid.UUID, query: Query[TreeFilter]):
    """Lists trees in the order in which they were opened; only those of a step, if given."""
    run = visible_run(request.user, run_id)
    trees, after = forest.trees(run, query.step, query.cursor, query.limit)
    return {"trees": trees, "next": after}


@router.get("/{uuid:run_id}/trees/{int:tree}/nodes", response=NodeList)
def list_nodes(request: HttpRequest, run_id: uuid.UUID, tree: Tree, query: Query[NodeFilter]):
    """Lists the nodes of one tree by number, filtered by agent, verdict, score or depth."""
    run = visible_run(request.user, run_id)
    nodes = forest.nodes(run, tree)
    if nodes is None:
        raise Http404
    matching = [node for node in nodes if _matches(node, query)]
    shown = matching[: query.limit]
    return {"nodes": shown, "next": shown[-1]["node"] if len(matching) > len(shown) else None}


@router.get("/{uuid:run_id}/evaluations", response=EvaluationList)
def list_evaluations(request: HttpRequest, run_id: uuid.UUID, query: Query[Cursor]):
    """Lists the run's evaluations in order of seq."""
    run = visible_run(request.user, run_id)
    evaluations, after = forest.evaluations(run, query.cursor, query.limit)
    return {"evaluations": evaluations, "next": after}


def _matches(node: dict[str, Any], query: NodeFilter) -> bool:
    score = node["score"]
    return (
        node["node"] > (query.cursor or 0)
        and query.agent in (None, node["agent"])
        and query.verdict in (None, node["verdict"])
        and query.depth in (None, node["depth"])
        and (query.least_score is None or (score is not None and score >= query.least_score))
    )
