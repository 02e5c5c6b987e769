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
    ends = list(_before(run, "step.end", before)[: limit + 1])
    shown = ends[:limit]
    if not shown:
        return {"steps": [], "next": None}
    after = ends[limit].seq if len(ends) > limit else 0
    waits = _waits(run, after, shown[0].seq)
    result = [
        {
            "seq": end.seq,
            "step": end.payload["step"],
            "seconds": end.payload.get("seconds"),
            "phases": _known(end.payload.get("phases")),
            "waits": _within(waits, shown[index + 1].seq if index + 1 < len(shown) else after, end),
        }
        for index, end in enumerate(shown)
    ]
    return {"steps": result, "next": shown[-1].seq if len(ends) > limit else None}


def _known(phases: dict[str, float | None] | None) -> dict[str, float]:
    return {name: spent for name, spent in (phases or {}).items() if spent is not None}


def log_lines(
    run: Run, before: int | None, limit: int, levels: Sequence[str], q: str
) -> dict[str, Any]:
    """Returns {lines: [{seq, time, level, message}], next}, newest first; messages contain `q`."""
    events = _before(run, "log.line", before)
    if levels:
        events = events.filter(payload__level__in=levels)
    if q:
        events = events.filter(payload__message__icontains=q)
    rows = list(events[: limit + 1])
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
    events = Event.objects.filter(run=run, kind=kind).order_by("-seq")
    return events if before is None else events.filter(seq__lt=before)


def _waits(run: Run, after: int, until: int) -> list[tuple[int, str, float]]:
    """Returns (seq, name, seconds) of every wait that began in this part of the log and is over."""
    waiting = Event.objects.filter(run=run, kind="run.waiting", seq__gt=after, seq__lt=until)
    events = list(waiting.order_by("seq").values_list("seq", "time", "payload__name"))
    return [
        (seq, name, (ended - began).total_seconds())
        for (seq, began, name), (_, ended, _) in pairwise(events)
        if name
    ]


def _within(waits: Sequence[tuple[int, str, float]], after: int, end: Event) -> dict[str, float]:
    seconds_by_name: dict[str, float] = {}
    for seq, name, seconds in waits:
        if after < seq < end.seq:
            seconds_by_name[name] = seconds_by_name.get(name, 0.0) + seconds
    return seconds_by_name
