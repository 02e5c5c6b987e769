"""Tests of difficulty from pass counts: shrunk for few attempts, near the raw rate for many."""

import numpy as np
import pytest

from engine.problems.difficulty import MAX_STRENGTH, MIN_STRENGTH, difficulties


def test_much_evidence_is_believed_and_little_is_not():
    hard, easy, unsure, untried = difficulties([0, 1000, 0, 0], [1000, 1000, 1, 0])
    assert hard > 0.99 and easy < 0.01
    average = 1 - 1000.5 / 2002
    assert untried == pytest.approx(average)
    assert average < unsure < hard


def test_a_worked_example():
    # Rates 1/4 and 3/4, m = 8.5/17 = 0.5: excess 2 * 8 / 16 - 0.25, weight 16 - 8 - 1 = 7,
    # so s2 = 0.75 / 7 and k = 0.25 * 7 / 0.75 - 1 = 4/3.
    low, high = difficulties([2, 6], [8, 8])
    k = 0.25 * 7 / 0.75 - 1
    assert low == pytest.approx(1 - (2 + k / 2) / (8 + k))
    assert high == pytest.approx(1 - (6 + k / 2) / (8 + k))


def test_equal_rates_are_shrunk_fully_and_extreme_ones_hardly():
    equal = difficulties([5] * 20, [10] * 20)
    assert np.ptp(equal) == 0 and equal[0] == pytest.approx(0.5)
    never, always = difficulties([0, 10], [10, 10])
    assert never == pytest.approx(1 - MIN_STRENGTH * 0.5 / (10 + MIN_STRENGTH))
    assert always == pytest.approx(1 - never)
    (only,) = difficulties([3], [3])
    assert only == pytest.approx(1 - (3 + MAX_STRENGTH * 3.5 / 4) / (3 + MAX_STRENGTH))


def test_the_estimate_recovers_the_strength_that_made_the_rates():
    random = np.random.default_rng(0)
    rates = random.beta(2.0, 6.0, 4000)
    passed = random.binomial(8, rates)
    estimated = np.array(difficulties(passed.tolist(), [8] * 4000))
    ideal = 1 - (passed + 2.0) / (8 + 8.0)
    assert np.abs(estimated - ideal).max() < 0.02
    raw = 1 - passed / 8
    assert np.square(estimated - (1 - rates)).mean() < 0.6 * np.square(raw - (1 - rates)).mean()


def test_fewer_passes_are_never_easier():
    result = difficulties(list(range(9)), [8] * 9)
    assert result == sorted(result, reverse=True)


@pytest.mark.parametrize(("passed", "tried"), [([2], [1]), ([-1], [1]), ([1, 1], [1])])
def test_impossible_counts_are_refused(passed, tried):
    with pytest.raises(ValueError, match=r"passes"):
        difficulties(passed, tried)


def test_without_observations_the_difficulty_is_one_half():
    assert difficulties([], []) == []
    assert difficulties([0, 0], [0, 0]) == [0.5, 0.5]
