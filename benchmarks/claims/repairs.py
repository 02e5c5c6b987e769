"""Shares of right answers among first attempts and repairs, counted in the events of a training.

A wrong program of an underspecified problem is another reading if it is the reference of one, and
only its guess is wrong; any other wrong program misses something that its statement says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event
from engine.problems.generator.underspecified import programs_of

LAST_SHARE = 1 / 3
"""Share of the steps that is counted, at the end of the training."""


class Outcome(StrEnum):
    RIGHT = "right"
    READING = "another-reading"
    WRONG = "wrong"


def repair_figures(events: Iterable[Event]) -> dict[str, float]:
    """Returns the shares over the underspecified problems of the last steps, by the outcome of the
    repaired program; none for a training without such problems."""
    counts: Counter[tuple[str, Outcome]] = Counter(_attempts(list(surviving_events(events))))

    def share(attempt: str, outcome: Outcome) -> dict[str, float]:
        total = sum(counts[attempt, each] for each in Outcome)
        if not total:
            return {}
        return {f"training/{attempt}/{outcome}": counts[attempt, outcome] / total}

    figures = share("first", Outcome.RIGHT) | share("first", Outcome.READING)
    for parent in (Outcome.READING, Outcome.WRONG):
        figures |= share(f"repair-of-{parent}", Outcome.RIGHT)
    return figures


def _attempts(events: list[Event]) -> Iterator[tuple[str, Outcome]]:
    """Yields what was attempted, and its outcome, for each verified node that is counted."""
    last = max((e.payload["step"] for e in events if e.kind == "step.end"), default=0)
    first = last - round(last * LAST_SHARE)
    programs: dict[int | None, frozenset[str]] = {}
    parents: dict[tuple[int | None, int | None], int] = {}
    outcomes: dict[tuple[int | None, int | None], Outcome] = {}
    for event in events:
        payload, key = event.payload, (event.tree, event.node)
        match event.kind:
            case "tree.open" if first < payload["step"] <= last:
                programs[event.tree] = programs_of(payload["problem"])
            case "node.open":
                parents[key] = payload["parent"]
            case "node.close" if programs.get(event.tree) and payload["score"] is not None:
                outcomes[key] = _outcome(payload, programs[event.tree])
                parent = parents[key]
                yield (
                    f"repair-of-{outcomes[event.tree, parent]}" if parent else "first",
                    outcomes[key],
                )


def _outcome(payload: dict[str, object], readings: frozenset[str]) -> Outcome:
    if payload["score"] == 1.0:
        return Outcome.RIGHT
    return Outcome.READING if payload["program"] in readings else Outcome.WRONG
