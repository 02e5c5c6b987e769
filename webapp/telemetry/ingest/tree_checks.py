"""Checks of the trees of external engines: an invalid tree is refused before it is stored.

Invariant: in the log of each run, below the newest `tree.open` of a tree every node is opened once,
under the root or under a node that was opened before it. So no path to the root has a cycle.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Max

from engine.events.vocabulary import Event
from webapp.rest.problem_details import Invalid
from webapp.telemetry.models import Event as StoredEvent

ROOT = 0


def refuse_broken_trees(run_id: uuid.UUID, events: Sequence[Event], head_seq: int) -> None:
    """Raises `Invalid` for the first new event of a batch, above `head_seq`, that opens a node
    which cannot be in its tree. The caller holds the run's row lock."""
    new = [(index, event) for index, event in enumerate(events) if event.seq > head_seq]
    opened = _opened(run_id, _named(event for _, event in new))
    for index, event in new:
        if event.kind == "tree.open":
            opened[event.tree] = set()
        elif event.kind == "node.open":
            present = opened.setdefault(event.tree, set())
            _refuse_node(f"events.{index}", event, present)
            present.add(event.node)


def _named(events: Iterable[Event]) -> dict[int, set[int]]:
    """Returns, by tree, the nodes that events open or name as parents: those to look up in the
    stored log."""
    named: dict[int, set[int]] = {}
    reopened: set[int] = set()
    for event in events:
        if event.kind == "tree.open":
            reopened.add(event.tree)
        elif event.kind == "node.open" and event.tree not in reopened:
            named.setdefault(event.tree, set()).update((event.node, event.payload["parent"]))
    return named


def _opened(run_id: uuid.UUID, named: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """Returns those of the named nodes that are stored since the newest `tree.open` of their tree.
    Reads rows only of the nodes that the batch names, whatever the size of the tree."""
    if not named:
        return {}
    of_trees = StoredEvent.objects.filter(run=run_id, tree__in=named)
    begun = of_trees.filter(kind="tree.open").values("tree").annotate(last=Max("seq"))
    since = dict(begun.values_list("tree", "last"))
    # The engine may send any parent: no stored node has a number beyond the column's range.
    nodes = [node for node in set().union(*named.values()) if 0 <= node < 2**31]
    rows = of_trees.filter(kind="node.open", node__in=nodes).values_list("tree", "node", "seq")
    opened: dict[int, set[int]] = {tree: set() for tree in named}
    for tree, node, seq in rows:
        if seq > since.get(tree, 0):
            opened[tree].add(node)
    return opened


def _refuse_node(path: str, event: Event, present: set[int]) -> None:
    node, parent = event.node, event.payload["parent"]
    if node == ROOT:
        raise Invalid(f"{path}.node", node, "node 0 is the root, the problem: number nodes from 1")
    if node in present:
        reason = f"tree {event.tree} has a node of this number: open each node once"
        raise Invalid(f"{path}.node", node, reason)
    if parent == node:
        reason = f"node {node} cannot be its own parent: name one that was opened before, or 0"
        raise Invalid(f"{path}.payload.parent", parent, reason)
    if parent != ROOT and parent not in present:
        reason = (
            f"tree {event.tree} has no such node yet: name one that was opened before node {node}, "
            "or 0, the root"
        )
        raise Invalid(f"{path}.payload.parent", parent, reason)
