"""Surviving timeline of a log: the events of a run that no resume has voided.

Invariant: two runs of the same settings in deterministic mode have the same `figures`, bit for bit,
whether or when either of them was killed, stopped and resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.events.vocabulary import Event

OF_THE_PROCESS = frozenset(
    {
        "run.state", "run.resumed", "run.waiting", "run.planned", "checkpoint.saved",
        "system.sample", "log.line", "error", "health",
    }
)  # fmt: skip
"""Kinds that report on the engine's process, not on the run's results; one rule of health compares
times."""

TIMES = frozenset({"seconds", "phases", "training_seconds"})
"""Fields of payloads that are measured by a clock."""


def surviving_events(events: Iterable[Event]) -> list[Event]:
    """Returns the events that no resume voided, in order; of repeated events, only the last."""
    surviving: list[tuple[int | None, Event]] = []
    step_of_tree: dict[int | None, int] = {}
    seen: set[tuple[str, ...]] = set()
    for event in events:
        if event.kind == "run.resumed":
            last = event.payload["step"]
            surviving = [
                (step, earlier) for step, earlier in surviving if step is None or step <= last
            ]
        elif event.kind == "tree.open":
            step_of_tree[event.tree] = event.payload["step"]
        elif key := _uniqueness_key(event):
            # For example, the evaluation of the starting weights precedes the first checkpoint.
            if key in seen:
                surviving = [
                    (step, earlier)
                    for step, earlier in surviving
                    if _uniqueness_key(earlier) != key
                ]
            seen.add(key)
        surviving.append((event.payload.get("step", step_of_tree.get(event.tree)), event))
    return [event for _, event in surviving]


def measured_and_saved(events: Iterable[Event]) -> tuple[set[tuple[str, int]], set[str]]:
    """Returns split and step of each surviving evaluation, and the paths of saved checkpoints."""
    kinds = ("run.resumed", "eval.result", "checkpoint.saved")
    surviving = surviving_events(event for event in events if event.kind in kinds)
    measured = {
        (e.payload["split"], e.payload["step"]) for e in surviving if e.kind == "eval.result"
    }
    return measured, {e.payload["path"] for e in surviving if e.kind == "checkpoint.saved"}


def figures(events: Iterable[Event]) -> list[tuple[str, int | None, int | None, Any]]:
    """Returns (kind, tree, node, payload) of the run's results, in order, without times.

    A tree's id in the log is the seq of a line, and numbering continues after a resume: here trees
    are numbered from 1 in the order of the surviving events.
    """
    numbers: dict[int | None, int | None] = {None: None}
    results = []
    for event in surviving_events(events):
        if event.kind in OF_THE_PROCESS:
            continue
        tree = numbers.setdefault(event.tree, len(numbers))
        payload = {name: value for name, value in event.payload.items() if name not in TIMES}
        if "trees" in payload and event.kind == "agent.update":
            payload["trees"] = [numbers.get(tree) for tree in payload["trees"]]
        results.append((event.kind, tree, event.node, payload))
    return results


def _uniqueness_key(event: Event) -> tuple[str, ...] | None:
    """Returns the key under which only the last event survives, or None if the kind has none."""
    match event.kind:
        case "eval.result" | "eval.outcomes":
            return event.kind, event.payload["split"], str(event.payload["step"])
        case "checkpoint.saved":
            return event.kind, event.payload["path"]
        case _:
            return None
