"""Trees as an engine elsewhere reports them: what would be no tree is refused before it is stored.

Invariant: in the log of each run, below the newest `tree.open` of a tree every node is opened once,
under the root or under a node that was opened before it. So no path to the root has a cycle.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from engine.events import Event
from webapp.problems import Invalid
from webapp.telemetry.models import Event as StoredEvent

ROOT = 0
_OPENS = ("tree.open", "node.open")


def refuse_broken_trees(run_id: uuid.UUID, events: Sequence[Event], head_seq: int) -> None:
    """Raises Invalid for the first new event of a batch, one above `head_seq`, that opens a node
    which cannot be in its tree. The run's row is locked."""
    new = [(place, event) for place, event in enumerate(events) if event.seq > head_seq]
    trees = {event.tree for _, event in new if event.kind == "node.open"}
    if not trees:
        return
    opened = _opened(run_id, trees)
    for place, event in new:
        if event.kind == "tree.open":
            opened[event.tree] = set()
        elif event.kind == "node.open":
            present = opened.setdefault(event.tree, set())
            _refuse_node(f"events.{place}", event, present)
            present.add(event.node)


def _opened(run_id: uuid.UUID, trees: Iterable[int]) -> dict[int, set[int]]:
    """Stored nodes of each tree, since it was opened last."""
    found = StoredEvent.objects.filter(run=run_id, tree__in=trees, kind__in=_OPENS).order_by("seq")
    opened: dict[int, set[int]] = {}
    for kind, tree, node in found.values_list("kind", "tree", "node").iterator():
        if kind == "tree.open":
            opened[tree] = set()
        else:
            opened.setdefault(tree, set()).add(node)
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
