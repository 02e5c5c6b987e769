"""Means over seeds, paired differences and verdicts.

Two arms are compared seed by seed: the same seed is the same problems in the same order. Intervals
are Student's t (`engine.problems.paired.paired_student`), without correction for several figures: a
claim's verdict is on its one primary figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.claims.claim import Expected
from engine.problems.paired import Interval, paired_student

CONFIDENCE = 0.95
ENOUGH_SEEDS = 10
"""Seeds per arm from which a verdict is not marked as one on too few."""
LEAST_SEEDS = 2


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference seen"
    UNKNOWN = "not decided"


class Outcome(StrEnum):
    """What a comparison says about the statement."""

    SEEN = "seen"
    NOT_SEEN = "not seen"
    OPPOSITE = "the opposite is seen"
    UNKNOWN = "not decided"


@dataclass(frozen=True)
class Comparison:
    """An arm's figure minus its control's, over the seeds that both have."""

    seeds: int
    interval: Interval | None
    """None for fewer than two seeds."""

    @property
    def verdict(self) -> Verdict:
        """Returns whether the arm is better than its control: only if the interval excludes 0."""
        if self.interval is None:
            return Verdict.UNKNOWN
        if self.interval.low > 0:
            return Verdict.BETTER
        return Verdict.WORSE if self.interval.high < 0 else Verdict.NO_DIFFERENCE

    @property
    def detectable(self) -> float | None:
        """Returns the half width of the interval, the smallest mean difference at which its ends
        would exclude 0; None without an interval."""
        return None if self.interval is None else (self.interval.high - self.interval.low) / 2

    def outcome(self, expected: Expected) -> Outcome:
        """Returns what the comparison says about a statement that expects the arm to be higher, or
        lower, than its control."""
        match self.verdict:
            case Verdict.UNKNOWN:
                return Outcome.UNKNOWN
            case Verdict.NO_DIFFERENCE:
                return Outcome.NOT_SEEN
            case verdict:
                agrees = (verdict is Verdict.BETTER) == (expected == "higher")
                return Outcome.SEEN if agrees else Outcome.OPPOSITE


def compared(control: Mapping[int, float | None], arm: Mapping[int, float | None]) -> Comparison:
    """Returns arm minus control, paired by seed; values are by seed."""
    both = [s for s in sorted(control) if control[s] is not None and arm.get(s) is not None]
    if len(both) < LEAST_SEEDS:
        return Comparison(len(both), None)
    before, after = [control[s] for s in both], [arm[s] for s in both]
    return Comparison(len(both), paired_student(before, after, CONFIDENCE))


def reaches(comparison: Comparison, goal: float) -> bool:
    """Returns whether the mean difference is at least the goal; a difference above 0 must be seen,
    too."""
    if comparison.interval is None or comparison.interval.difference < goal:
        return False
    return goal <= 0 or comparison.verdict is Verdict.BETTER


def mean_interval(values: Mapping[int, float | None]) -> tuple[float | None, float | None]:
    """Returns the mean over the seeds, and the half width of its interval; None where the seeds are
    too few."""
    known = [value for value in values.values() if value is not None]
    if not known:
        return None, None
    if len(known) < LEAST_SEEDS:
        return known[0], None
    interval = paired_student([0.0] * len(known), known, CONFIDENCE)
    return interval.difference, interval.high - interval.difference


def overall(outcomes: list[Outcome]) -> Outcome:
    """Returns the outcome of a statement about several arms: seen only if each of them is, and not
    seen as soon as one of them is not."""
    for outcome in (Outcome.OPPOSITE, Outcome.NOT_SEEN, Outcome.UNKNOWN):
        if outcome in outcomes:
            return outcome
    return Outcome.SEEN if outcomes else Outcome.UNKNOWN
