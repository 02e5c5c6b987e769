"""Tests that equal children are drawn with equal probability, at any number and by any method."""

import numpy as np
import pytest

from engine.search.children import MAX_INDIVIDUAL, MIN_VECTORIZED, Children
from engine.search.posteriors import make_posterior, thompson
from tests.engine.search.growing import FAMILIES

CHOICES = 4000


def a_pool(family, number, seed=3):
    """A pool in which most children have one score, and some have many."""
    rng = np.random.default_rng(seed)
    pool = Children(family)
    posteriors = {}
    for child in range(number):
        posteriors[child] = make_posterior(family)
        for _ in range(1 + (child % 7 == 0) * int(rng.integers(1, 9))):
            score = float(rng.choice([0, 0.5, 1], p=[0.7, 0.1, 0.2]))
            pool.observe(child, score)
            posteriors[child].observe(score)
    return pool, posteriors


@pytest.mark.parametrize("number", [1, MIN_VECTORIZED - 1, MIN_VECTORIZED, MAX_INDIVIDUAL])
@pytest.mark.parametrize("family", FAMILIES)
def test_up_to_its_limit_a_pool_draws_what_single_draws_would(family, number):
    pool, posteriors = a_pool(family, number)
    ours, alone = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(20):
        assert pool.choose(ours) == thompson(posteriors, alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wide_pool_chooses_with_the_probabilities_of_single_draws(family):
    pool, posteriors = a_pool(family, 3 * MAX_INDIVIDUAL)
    ours, alone = np.random.default_rng(5), np.random.default_rng(6)
    grouped = [pool.choose(ours) for _ in range(CHOICES)]
    single = [thompson(posteriors, alone) for _ in range(CHOICES)]
    kinds = {child: posterior.key() for child, posterior in posteriors.items()}
    for key in set(kinds.values()):
        shares = [
            np.mean([kinds[child] == key for child, _ in actual]) for actual in (grouped, single)
        ]
        error = np.sqrt(sum(share * (1 - share) for share in shares) / CHOICES)
        assert abs(shares[0] - shares[1]) <= 4.5 * error + 1e-12, key
    # Within a group, draws are uniform, and the winning value has the same distribution.
    positions = [child for child, _ in grouped]
    assert len(set(positions)) > MAX_INDIVIDUAL
    quantiles = np.linspace(0.05, 0.95, 7)
    ours, theirs = (
        np.quantile([draws[child] for child, draws in actual], quantiles)
        for actual in (grouped, single)
    )
    spread = theirs[-1] - theirs[0]
    assert np.abs(ours - theirs).max() < 0.1 * spread


@pytest.mark.parametrize("family", FAMILIES)
def test_one_wide_pool_forgets_the_groups_that_it_left(family):
    """A child that is scored a thousand times passes through a thousand groups."""
    pool, _ = a_pool(family, MAX_INDIVIDUAL + 1)
    for turn in range(1000):
        pool.observe(5, float(turn % 3 == 0))
    assert len(pool._draws._members) < 2 * MAX_INDIVIDUAL
    child, draws = pool.choose(np.random.default_rng(0))
    assert set(draws) == {child}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wide_pool_that_was_drawn_from_before_chooses_as_one_that_was_not(family):
    """What it caches between two choices is dropped whenever a group that it refers to changes."""
    rng = np.random.default_rng(4)
    used, fresh = a_pool(family, MAX_INDIVIDUAL + 1)[0], a_pool(family, MAX_INDIVIDUAL + 1)[0]
    cached = 0
    for turn in range(600):
        child = int(rng.integers(5 * MAX_INDIVIDUAL)) if turn % 3 else MAX_INDIVIDUAL + 1 + turn
        score = float(rng.choice([0, 1]))
        used.observe(child, score)
        fresh.observe(child, score)
        cached += used._draws._by_size is not None
        fresh._draws._by_size = None
        seed = [turn, 6]
        assert used.choose(np.random.default_rng(seed)) == fresh.choose(np.random.default_rng(seed))
    assert cached > 20
