"""Tests of the claims' statistics: intervals, verdicts and outcomes."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.claims.statistics import Outcome, Verdict, compared, mean_interval, overall, reaches
from engine.problems.paired import paired_student

WORKED = {1: 0.50, 2: 0.55, 3: 0.60}
"""Control of the worked numbers."""


def test_the_interval_is_that_of_student():
    interval = paired_student([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    half = 4.302652729911275 * 0.1 / 3**0.5  # t(2) at 0.975, sd 0.1
    assert interval.difference == pytest.approx(0.2)
    assert (interval.low, interval.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert paired_student([1, 2, 4], [2, 3, 5]).low == pytest.approx(1)  # no spread
    for a, b in (([1.0], [2.0]), ([1.0, 2.0], [1.0])):
        with pytest.raises(ValueError, match="give equally many, two or more"):
            paired_student(a, b)


@pytest.mark.parametrize(
    ("arm", "verdict", "outcome"),
    [
        ({1: 0.60, 2: 0.66, 3: 0.70}, Verdict.BETTER, Outcome.OPPOSITE),
        ({1: 0.40, 2: 0.44, 3: 0.50}, Verdict.WORSE, Outcome.SEEN),
        ({1: 0.40, 2: 0.66, 3: 0.50}, Verdict.NO_DIFFERENCE, Outcome.NOT_SEEN),
        ({1: 0.60, 2: 0.44, 3: 0.70}, Verdict.NO_DIFFERENCE, Outcome.NOT_SEEN),
        ({1: 0.40}, Verdict.UNKNOWN, Outcome.UNKNOWN),
        ({4: 0.4, 5: 0.4, 6: 0.4}, Verdict.UNKNOWN, Outcome.UNKNOWN),  # no seed in common
        ({1: None, 2: 0.44, 3: None}, Verdict.UNKNOWN, Outcome.UNKNOWN),
    ],
)
def test_a_verdict_needs_an_interval_that_excludes_zero(arm, verdict, outcome):
    comparison = compared(WORKED, arm)
    assert comparison.verdict is verdict
    assert comparison.outcome("lower") is outcome


def test_differences_are_paired_by_seed_and_the_detectable_one_is_half_the_interval():
    spread = {1: 0.1, 2: 0.5, 3: 0.9}
    comparison = compared(spread, {3: 0.95, 1: 0.14, 2: 0.56})  # far apart, but not by seed
    assert comparison.interval.difference == pytest.approx(0.05)
    assert comparison.detectable == pytest.approx(4.302652729911275 * 0.01 / 3**0.5)
    assert comparison.verdict is Verdict.BETTER


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_arms_that_are_equal_by_construction_differ_in_a_twentieth_of_all_cases(seeds):
    """Both arms answer the same problems with the same probabilities, so each verdict of a
    difference is an error; the interval's coverage is 95 %."""
    rng = np.random.default_rng(7)
    cases, problems = 4000, 100
    chances = rng.beta(2, 1, size=(cases, seeds, 1, problems))  # as unequal as problems are
    shares = (rng.random((cases, seeds, 2, problems)) < chances).mean(axis=-1)
    verdicts = Counter(
        compared(dict(enumerate(one[:, 0])), dict(enumerate(one[:, 1]))).verdict for one in shares
    )
    assert verdicts[Verdict.NO_DIFFERENCE] / cases == pytest.approx(0.95, abs=0.012)
    assert verdicts[Verdict.BETTER] / cases == pytest.approx(0.025, abs=0.009)
    assert verdicts[Verdict.WORSE] / cases == pytest.approx(0.025, abs=0.009)


def test_the_mean_of_an_arm_has_an_interval_from_two_seeds_on():
    assert mean_interval({1: 0.4, 2: 0.6}) == pytest.approx((0.5, 12.706204736432095 * 0.1))
    assert mean_interval({1: 0.4, 2: None}) == (0.4, None)
    assert mean_interval({}) == (None, None)


def test_a_statement_about_several_arms_is_seen_only_if_each_is():
    assert overall([Outcome.SEEN, Outcome.SEEN]) is Outcome.SEEN
    assert overall([Outcome.SEEN, Outcome.NOT_SEEN]) is Outcome.NOT_SEEN
    assert overall([Outcome.UNKNOWN, Outcome.SEEN]) is Outcome.UNKNOWN
    assert overall([Outcome.UNKNOWN, Outcome.NOT_SEEN]) is Outcome.NOT_SEEN
    assert overall([Outcome.OPPOSITE, Outcome.UNKNOWN, Outcome.SEEN]) is Outcome.OPPOSITE
    assert overall([]) is Outcome.UNKNOWN


def test_a_goal_above_zero_needs_a_difference_that_is_seen():
    clear = compared(WORKED, {1: 0.60, 2: 0.66, 3: 0.70})
    wide = compared(WORKED, {1: 0.40, 2: 1.0, 3: 0.70})
    assert [reaches(clear, goal) for goal in (0.1, 0.2, -0.01)] == [True, False, True]
    assert [reaches(wide, goal) for goal in (0.1, -0.01)] == [False, True]
    assert not reaches(compared(WORKED, {}), -0.01)
