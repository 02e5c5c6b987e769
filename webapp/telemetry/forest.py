"""Queries of a run's trees and nodes as rows. Callers have checked who may see the run."""

from __future__ import annotations

from typing import Any

from webapp.experiments.models import Run
from webapp.telemetry.models import Event

_OF_NODES = ("node.open", "node.close", "node.credit")


def trees(
    run: Run, step: int | None, after: int | None, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Returns rows of trees by id after `after`, and the cursor of the next page, if any."""
    opened = Event.objects.filter(run=run, kind="tree.open", tree__gt=after or 0)
    if step is not None:
        opened = opened.filter(payload__step=step)
    fetched = list(opened.order_by("tree").values_list("tree", "payload")[: limit + 1])
    shown = fetched[:limit]
    ids = [tree for tree, _ in shown]
    ended = Event.objects.filter(run=run, kind="tree.close", tree__in=ids)
    closed = dict(ended.values_list("tree", "payload"))
    rows = [_tree(tree, payload, closed.get(tree)) for tree, payload in shown]
    return rows, ids[-1] if len(fetched) > len(shown) else None


def nodes(run: Run, tree: int) -> list[dict[str, Any]] | None:
    """Returns rows of all nodes of one tree, by number; None if there is no such tree."""
    if not Event.objects.filter(run=run, tree=tree, kind="tree.open").exists():
        return None
    events = Event.objects.filter(run=run, tree=tree, kind__in=_OF_NODES).order_by("seq")
    rows: dict[int, dict[str, Any]] = {}
    for kind, node, payload in events.values_list("kind", "node", "payload"):
        if kind == "node.open":
            rows[node] = _node(tree, node, payload)
        elif row := rows.get(node):
            row |= {name: payload[name] for name in _LATER & payload.keys()}
    return [rows[node] for node in sorted(rows)]


def evaluations(run: Run, after: int | None, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Returns payloads of evaluations by seq, each with its seq, and the next page's cursor."""
    events = Event.objects.filter(run=run, kind="eval.result", seq__gt=after or 0).order_by("seq")
    fetched = list(events.values_list("seq", "payload")[: limit + 1])
    shown = [{"seq": seq, **payload} for seq, payload in fetched[:limit]]
    return shown, shown[-1]["seq"] if len(fetched) > len(shown) else None


_LATER = {"verdict", "score", "tokens", "seconds", "shaped", "advantage"}


def _node(tree: int, node: int, opened: dict[str, Any]) -> dict[str, Any]:
    row = {"tree": tree, "node": node, **dict.fromkeys(_LATER)}
    return row | {name: opened[name] for name in ("agent", "parent", "depth")}


def _tree(tree: int, opened: dict[str, Any], closed: dict[str, Any] | None) -> dict[str, Any]:
    result = closed or {}
    return {
        "tree": tree,
        "step": opened["step"],
        "problem": opened["problem"],
        "difficulty": opened.get("difficulty", 0),
        "closed": closed is not None,
        **{name: result.get(name) for name in ("nodes", "solved", "mean_score", "filtered")},
    }
