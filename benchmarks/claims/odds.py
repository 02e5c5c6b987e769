"""The odds of a repair: the chance that it is right over the chance that a fresh answer is.

Counts are those of `engine.evaluation.attempts`, summed over the problems of a cell. Two ratios:
over all problems, as on the page of a run; and over the problems that were repaired, where
`repairs_expected` is how many fresh answers to the same problems would have been right, by their
independent samples. Repairs are of problems that a first answer missed, so that the first ratio is
usually below the second.

Source: intervals by the jackknife over seeds (or problems) of the logarithm, with Student's t; R.
G. Miller, "The jackknife - a review", Biometrika 61 (1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.claims.statistics import CONFIDENCE


@dataclass(frozen=True)
class Counts:
    """Attempts of a cell, or of one problem."""

    fresh: float
    fresh_right: float
    repairs: float
    """Repairs of wrong programs."""
    repairs_right: float
    repairs_expected: float
    """Right answers among as many fresh ones to the same problems."""

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        columns = [(c.fresh, c.fresh_right, c.repairs, c.repairs_right, c.repairs_expected)
                   for c in counts]  # fmt: skip
        return cls(*map(sum, zip(*columns, strict=True)))

    @property
    def odds(self) -> float | None:
        """Chance of a repair over that of a fresh answer; None where there is none to divide by."""
        if not self.repairs or not self.fresh_right:
            return None
        return (self.repairs_right / self.repairs) / (self.fresh_right / self.fresh)

    @property
    def odds_on_same(self) -> float | None:
        """The same on the problems that were repaired."""
        return self.repairs_right / self.repairs_expected if self.repairs_expected else None


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float | None = None
    """None: too few cells for an interval, or one of them decides whether the ratio is 0."""
    high: float | None = None


def counts_of(problem: Mapping[str, Any]) -> Counts:
    """Returns the counts of a problem of a report."""
    (fresh, right), (repairs, repaired), (samples, solved) = (
        problem["attempts"][name] for name in ("fresh", "repairs", "samples")
    )
    return Counts(fresh, right, repairs, repaired, repairs * solved / samples if samples else 0.0)


def attempt_counts(problems: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Returns the counts of a cell's problems, by the names of `figures.ATTEMPTS`; empty for a
    report that has none."""
    counted = [counts_of(problem) for problem in problems if "attempts" in problem]
    if not counted:
        return {}
    total = Counts.total(counted)
    return {
        "fresh": total.fresh,
        "fresh-right": total.fresh_right,
        "repairs": total.repairs,
        "repairs-right": total.repairs_right,
        "repairs-expected": total.repairs_expected,
    }


def ratio(counts: Sequence[Counts], value: Callable[[Counts], float | None]) -> Ratio | None:
    """Returns a ratio of the sums with its 95% interval; None where it is not defined."""
    whole = value(Counts.total(counts)) if counts else None
    if whole is None:
        return None
    if len(counts) < 2:
        return Ratio(whole)
    without = [value(Counts.total([*counts[:n], *counts[n + 1 :]])) for n in range(len(counts))]
    logs = [math.log(one) for one in without if one]
    if len(logs) < len(counts):
        return Ratio(whole)
    from scipy.special import stdtrit  # its import is slow

    count, middle = len(logs), sum(logs) / len(logs)
    error = math.sqrt((count - 1) / count * sum((one - middle) ** 2 for one in logs))
    factor = math.exp(float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2)) * error)
    return Ratio(whole, whole / factor, whole * factor)
