"""Figures of the updates of a training, counted in its events."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event


def update_figures(events: Iterable[Event]) -> dict[str, float]:
    """Returns the mean share of tokens whose ratio was clipped, over the updates that had rows, and
    the seconds per step; none for a log without a step."""
    clipped: list[float] = []
    steps, seconds = 0, 0.0
    for event in surviving_events(events):
        if event.kind == "agent.update" and event.payload["nodes"]:
            clipped.append(event.payload["clip_fraction"])
        elif event.kind == "step.end":
            steps, seconds = event.payload["step"], event.payload["training_seconds"]
    figures = {"training/clip_fraction": sum(clipped) / len(clipped)} if clipped else {}
    return figures | ({"training/seconds_per_step": seconds / steps} if steps else {})
