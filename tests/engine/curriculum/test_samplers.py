"""Tests of samplers: whatever they remember, they are asked once for each position, in order."""

import json
from collections import Counter

import numpy as np
import pytest

from engine.config.training import TrainingConfig
from engine.curriculum import SAMPLERS
from engine.curriculum.sampler import Draws
from tests.engine.memory.test_memories import tree

PROBLEMS = 7


def draws(name, seed=3, **explore):
    settings = TrainingConfig(sampler=name, **({name: explore} if explore else {}))
    return Draws(SAMPLERS[name](PROBLEMS, seed, settings))


def some_trees(rng):
    return [
        tree(int(n), *rng.integers(0, 2, 4).astype(float)) for n in rng.integers(0, PROBLEMS, 5)
    ]


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_the_contract_of_every_sampler(name):
    """Problems of the split; the same for the same trees; bit for bit after a resume."""

    def steps(one, first, last):
        taken = []
        for step in range(first, last):
            taken += one.take(5 * step, 5)
            one.take(5 * step, 8)  # looks ahead
            one.observe(step, some_trees(np.random.default_rng(step)))
        return taken

    whole = steps(draws(name), 0, 8)
    assert whole == steps(draws(name), 0, 8) and set(whole) <= set(range(PROBLEMS))
    cut, resumed = draws(name), draws(name)
    assert steps(cut, 0, 3) == whole[:15]
    resumed.restore(json.loads(json.dumps(cut.state())))
    assert steps(resumed, 3, 8) == whole[15:]


def test_the_default_order_goes_round_and_round():
    assert draws("order").take(0, 16) == [*range(7), *range(7), 0, 1]
    assert draws("order").take(12, 3) == [5, 6, 0]  # where a fork's parent was


def test_learnability_draws_by_the_variance_of_scores():
    one = draws("learnability", explore=0.1)
    sampler = one.sampler
    assert sampler.probabilities() == pytest.approx(np.full(7, 1 / 7))
    one.observe(1, [tree(0, 1.0, 1.0), tree(1, 0.0, 0.0), tree(2, 1.0, 0.0, 0.0, 0.0)])
    weights = np.array([0.0, 0.0, 0.1875, 0.25, 0.25, 0.25, 0.25])
    expected = 0.9 * weights / weights.sum() + 0.1 / 7
    assert sampler.probabilities() == pytest.approx(expected)
    count = 6000
    found = Counter(one.take(0, count))
    deviation = (expected * (1 - expected) * count) ** 0.5
    for problem in range(PROBLEMS):
        assert abs(found[problem] - expected[problem] * count) < 4 * deviation[problem]


def test_learnability_without_any_variance_is_uniform():
    one = draws("learnability", explore=0.0)
    one.observe(1, [tree(n, 1.0, 1.0) for n in range(PROBLEMS)])
    assert one.sampler.probabilities() == pytest.approx(np.full(7, 1 / 7))
    assert draws("learnability", seed=4).take(0, 30) != draws("learnability").take(0, 30)
