"""Events of a run as entries of another tracker. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from webapp.client.mirrors import Entry
from webapp.client.types import Event
from webapp.scalars import Scalars

TOPICS = "step.end,agent.update,eval.result,metric.logged,run.described"
"""Kinds of events that say something to a tracker."""


class Entries:
    """Makes entries of the events of one run."""

    def __init__(self) -> None:
        self._scalars = Scalars()

    def of(self, event: Event) -> Entry | None:
        """Returns the entry; None if there is nothing to say."""
        payload, time = event.payload, event.milliseconds / 1000
        if event.kind == "run.described":
            config = flat(payload.get("config", {}))
            return Entry(event.seq, time, 0, config=config) if config else None
        step = payload.get("step", 0)
        if event.kind == "metric.logged":
            fields = {name: payload.get(name, {}) for name in ("texts", "tables", "histograms")}
            numbers = dict(payload.get("numbers", {}))
            numbers |= {name: float(text) for name, text in payload.get("nonfinite", {}).items()}
            return Entry(event.seq, time, step, numbers, **fields)
        names, values, _gaps = self._scalars.of(event.kind, payload)
        numbers = dict(zip(names, map(float, values), strict=True))
        return Entry(event.seq, time, step, numbers) if numbers else None


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Returns settings with the path of each as its name, joined by dots."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def samples(histogram: Mapping[str, list[float]]) -> list[tuple[float, float, float]]:
    """Returns the bins of a histogram: left edge, right edge, count."""
    edges = histogram["edges"]
    return list(zip(edges[:-1], edges[1:], histogram["counts"], strict=True))


def table_text(table: Mapping[str, Any]) -> str:
    """Returns a table in Markdown, for a tracker that has only texts."""
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "\n".join("| " + " | ".join(_cell(one) for one in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return str(value).replace("|", "\\|").replace("\n", " ")
