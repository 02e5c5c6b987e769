"""Durations of steps by phase and by wait, and log lines of a run.

Pages of both go from the newest backwards, by seq.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from webapp.experiments.models import Run
from webapp.telemetry.models import Event

LEVELS = ("debug", "info", "warning", "error")


def steps(run: Run, before: int | None, limit: int) -> dict[str, Any]:
    """Returns {steps: [{seq, step, seconds, phases, waits: {name: seconds}}], next}, newest first.

    A wait counts towards the step in which it began; one that is not over yet does not count.
    """
    found = list(_before(run, "step.end", before)[: limit + 1])
    shown = found[:limit]
    if not shown:
        return {"steps": [], "next": None}
    after = found[limit].seq if len(found) > limit else 0
    waits = _waits(run, after, shown[0].seq)
    told = [
        {
            "seq": end.seq,
            "step": end.payload["step"],
            "seconds": end.payload.get("seconds", 0.0),
            "phases": end.payload.get("phases", {}),
            "waits": _within(waits, shown[place + 1].seq if place + 1 < len(shown) else after, end),
        }
        for place, end in enumerate(shown)
    ]
    return {"steps": told, "next": shown[-1].seq if len(found) > limit else None}


def log_lines(
    run: Run, before: int | None, limit: int, levels: Sequence[str], q: str
) -> dict[str, Any]:
    """Returns {lines: [{seq, time, level, message}], next}, newest first; messages contain `q`."""
    found = _before(run, "log.line", before)
    if levels:
        found = found.filter(payload__level__in=levels)
    if q:
        found = found.filter(payload__message__icontains=q)
    rows = list(found[: limit + 1])
    lines = [
        {
            "seq": row.seq,
            "time": row.time,
            "level": row.payload.get("level", "info"),
            "message": row.payload.get("message", ""),
        }
        for row in rows[:limit]
    ]
    return {"lines": lines, "next": rows[limit - 1].seq if len(rows) > limit else None}


def _before(run: Run, kind: str, before: int | None) -> Any:
    found = Event.objects.filter(run=run, kind=kind).order_by("-seq")
    return found if before is None else found.filter(seq__lt=before)


def _waits(run: Run, after: int, until: int) -> list[tuple[int, str, float]]:
    """Returns (seq, name, seconds) of every wait that began in this part of the log and is over."""
    told = Event.objects.filter(run=run, kind="run.waiting", seq__gt=after, seq__lt=until)
    events = list(told.order_by("seq").values_list("seq", "time", "payload__name"))
    return [
        (seq, name, (ended - began).total_seconds())
        for (seq, began, name), (_, ended, _) in pairwise(events)
        if name
    ]


def _within(waits: Sequence[tuple[int, str, float]], after: int, end: Event) -> dict[str, float]:
    told: dict[str, float] = {}
    for seq, name, seconds in waits:
        if after < seq < end.seq:
            told[name] = told.get(name, 0.0) + seconds
    return told
