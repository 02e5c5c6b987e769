"""Data of one search tree as it was at its end, or is now."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Max, Min

from webapp.experiments.models import Run
from webapp.reports.directives import Directive
from webapp.reports.embeds.readers import Reader, common
from webapp.telemetry import selectors
from webapp.telemetry.fold import fold
from webapp.telemetry.models import Event

MOST_NODES = 400
"""Nodes that are drawn; a tree shows its first ones."""
_LONGEST_STATEMENT = 600


def tree_data(directive: Directive, reader: Reader) -> dict[str, Any]:
    """Returns {tree, step, problem, statement, solved, closed, agents, nodes: [{id, parent, agent,
    outcome, score, verdict, advantage}], left_out} and `readers.common`. Raises `BlockError`."""
    (run,), _ = reader.runs_of(directive)
    assert directive.tree is not None, "parsed"
    log = selectors.tree(run, directive.tree)
    if log is None:
        raise directive.error("tree", directive.tree, _trees_of(run))
    tree = fold(json.loads(log)["events"]).trees[directive.tree]
    nodes = list(tree["nodes"].values())
    team = [agent["name"] for agent in run.config.get("agents", ())]
    agents = dict.fromkeys([*team, *(node["agent"] for node in nodes)])
    return {
        **common(directive, [run]),
        "tree": tree["id"],
        "step": tree["step"],
        "problem": tree["problem"],
        "statement": tree["statement"][:_LONGEST_STATEMENT],
        "solved": tree["solved"],
        "closed": tree["closed"],
        "agents": list(agents),
        "nodes": [_node(node) for node in nodes[:MOST_NODES]],
        "left_out": max(0, len(nodes) - MOST_NODES),
    }


def _trees_of(run: Run) -> str:
    """Says which trees the run has."""
    opened = Event.objects.filter(run=run, kind="tree.open")
    ends = opened.aggregate(first=Min("tree"), last=Max("tree"))
    if ends["first"] is None:
        return f"{run} has no trees yet"
    return f"{run} has trees from {ends['first']} to {ends['last']}"


def outcome(node: dict[str, Any]) -> str:
    """Returns the outcome of a folded node, as `outcome` of static/js/stream/fold.js does."""
    if not node["closed"]:
        return "open"
    if node["score"] is None:
        return "failure"
    if node["score"] >= 1:
        return "passed"
    return "partial" if (node.get("fraction") or 0) > 0 or node["score"] > 0 else "failed"


def _node(node: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "parent", "agent", "score", "advantage")
    return {
        **{name: node[name] for name in kept},
        "verdict": node.get("verdict", ""),
        "outcome": outcome(node),
    }
