"""Evaluation of rules: pure functions of a rule and what happened, which return occasions.

Invariant: folding points one by one or many at once gives the same occasions and the same progress;
after recovery a rule of a threshold or a level can fire again, never before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from engine.events.vocabulary import RunState
from webapp.scalars import LOGGED

LONGEST_CAUSE = 1000


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a notice says: `since` is in Unix seconds; of one rule, each `key` is noticed once."""

    key: str
    title: str
    cause: str
    since: float


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What an occasion needs of a run that changed its state."""

    name: str
    state: RunState
    step: int
    error: str
    at: float
    """Unix seconds of the change."""


@dataclass(frozen=True, slots=True)
class Point:
    step: int
    time: float
    """Unix seconds."""
    value: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the fold of a series or a level is: how many of the newest values in a row are beyond
    the threshold, since when, and how often the rule fired."""

    beyond: int = 0
    since: float | None = None
    fired: int = 0


class Threshold(Protocol):
    """What the fold reads of a rule."""

    direction: str
    threshold: float | None
    points: int


def ended(facts: RunFacts, *, failures_only: bool) -> Occasion | None:
    """The end of a run; None if it has not ended, or if only failures count and it did not fail."""
    verbs = {RunState.FINISHED: "finished", RunState.STOPPED: "was stopped"}
    if facts.state is RunState.FAILED:
        title, cause = f"{facts.name} failed at step {facts.step}", facts.error
    elif facts.state in verbs and not failures_only:
        title, cause = f"{facts.name} {verbs[facts.state]} at step {facts.step}", ""
    else:
        return None
    return Occasion(f"end:{facts.at:.6f}", title, cause[:LONGEST_CAUSE], facts.at)


def warned(names: Iterable[str], run: str, payload: dict[str, Any], at: float) -> Occasion | None:
    """A health warning that opened; None if it closed, or if `names` are others. A resumed run that
    repeats the step opens the same warning, which is the same occasion."""
    chosen = list(names)
    if payload.get("state") != "opened" or (chosen and payload.get("rule") not in chosen):
        return None
    rule, agent = str(payload.get("rule", ""))[:60], str(payload.get("agent", ""))[:60]
    whom = f" ({agent})" if agent else ""
    title = f"{run}: {payload.get('title', rule)}{whom}"
    since = payload.get("since_time")
    return Occasion(
        f"health:{rule}:{agent}:{payload.get('step', 0)}",
        title,
        str(payload.get("seen", ""))[:LONGEST_CAUSE],
        float(since) if isinstance(since, int | float) and since > 0 else at,
    )


def fold_points(
    rule: Threshold, run: str, series: str, progress: Progress, points: Iterable[Point]
) -> tuple[Progress, list[Occasion]]:
    """The progress after the points, and the occasions at which the rule fired: at the last of
    `rule.points` in a row beyond the threshold, and not again before one that is not."""
    occasions: list[Occasion] = []
    for point in points:
        if not _is_beyond(rule, point.value):
            progress = Progress(fired=progress.fired)
            continue
        since = point.time if progress.since is None else progress.since
        progress = Progress(progress.beyond + 1, since, progress.fired)
        if progress.beyond == max(1, rule.points):
            progress = Progress(progress.beyond, since, progress.fired + 1)
            occasions.append(_crossed(rule, run, series, point, progress))
    return progress, occasions


def _crossed(rule: Threshold, run: str, series: str, point: Point, progress: Progress) -> Occasion:
    times = f" for {rule.points} points in a row" if rule.points > 1 else ""
    name = shown_series(series)
    return Occasion(
        f"{series}:{progress.fired}",
        f"{run}: {name} is {rule.direction} {rule.threshold:g}",
        f"{name} is {point.value:.6g} at step {point.step}, {rule.direction} "
        f"{rule.threshold:g}{times}.",
        progress.since if progress.since is not None else point.time,
    )


def shown_series(series: str) -> str:
    """The name of a series for people: of a number that a program logged, the program's own."""
    if not series.startswith(LOGGED):
        return series
    return series.removeprefix(LOGGED).replace("~1", "/").replace("~0", "~")


def fold_level(
    subject: str, progress: Progress, *, beyond: bool, title: str, cause: str, now: float
) -> tuple[Progress, Occasion | None]:
    """The progress after one look at a level that is, or is not, beyond its limit, and the occasion
    if it just became so."""
    if not beyond:
        return Progress(fired=progress.fired), None
    if progress.beyond:
        return progress, None
    progress = Progress(1, now, progress.fired + 1)
    return progress, Occasion(f"{subject}:{progress.fired}", title, cause, now)


def stalled(
    minutes: int, run: str, mark: int, last: float, waiting: str, now: float
) -> Occasion | None:
    """A run whose last progress, the event of seq `mark` at `last`, is `minutes` ago or more; each
    pause is one occasion."""
    if now - last < 60 * minutes:
        return None
    wait = f" It waits for {waiting}." if waiting else ""
    return Occasion(
        f"stalled:{mark}",
        f"{run} has made no progress for {minutes} minutes",
        f"No step, tree, node, update or evaluation since then.{wait}",
        last,
    )


def _is_beyond(rule: Threshold, value: float) -> bool:
    limit = rule.threshold or 0.0
    return value > limit if rule.direction == "above" else value < limit
