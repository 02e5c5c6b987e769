import numpy as np
import pytest

from engine.config import registered
from engine.credit import ADVANTAGES
from engine.credit.filters import informative
from engine.credit.group import GroupContext
from engine.credit.overlong import overlong_penalty


def context(count):
    return GroupContext(("oak",) * count, np.full(count, -1))


def test_the_registry_and_the_modules_agree():
    assert sorted(ADVANTAGES) == registered("credit")


@pytest.mark.parametrize("method", sorted(ADVANTAGES))
def test_advantages_have_mean_zero(method):
    rng = np.random.default_rng(0)
    for _ in range(50):
        rewards = rng.normal(size=rng.integers(2, 40))
        found = ADVANTAGES[method](rewards, context(len(rewards)))
        assert found.mean() == pytest.approx(0.0, abs=1e-12)
        assert np.array_equal(np.argsort(found), np.argsort(rewards))


@pytest.mark.parametrize("method", sorted(ADVANTAGES))
@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 1.5])
def test_equal_rewards_give_no_advantage(method, value):
    for count in (1, 3, 7, 8):
        found = ADVANTAGES[method](np.full(count, value), context(count))
        assert found == pytest.approx(np.zeros(count), abs=1e-12)


def test_mars2_does_not_blow_up_rounding_errors():
    assert ADVANTAGES["mars2"](np.full(7, 0.1), context(7)).tolist() == [0.0] * 7


def test_mars2_advantages_have_unit_deviation():
    found = ADVANTAGES["mars2"](np.random.default_rng(1).normal(size=20), context(20))
    assert found.std(ddof=1) == pytest.approx(1.0)


def test_rloo_is_the_scaled_centred_reward():
    rewards = np.random.default_rng(2).random(8)
    rloo, centred = (ADVANTAGES[m](rewards, context(8)) for m in ("rloo", "dr_grpo"))
    assert rloo == pytest.approx(centred * 8 / 7)


def test_the_overlong_penalty_grows_over_the_buffer_and_stops_at_the_limit():
    lengths = np.array([0, 6, 7, 8, 10, 12])
    assert overlong_penalty(lengths, 10, 4, 2.0).tolist() == [0, 0, -0.5, -1, -2, -2]
    assert overlong_penalty(lengths, 10, 0, 2.0).tolist() == [0] * 6


def test_the_overlong_limit_may_differ_by_node():
    found = overlong_penalty(np.array([8, 8]), np.array([8, 16]), 4, 1.0)
    assert found.tolist() == [-1, 0]


def test_only_trees_between_the_ends_are_informative():
    assert [informative(s) for s in ([0, 0], [1, 1], [0, 1], [0.5], [])] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert not informative([0.2, 0.2], low=0.2, high=0.8)
    assert informative([0.2, 0.3], low=0.2, high=0.8)
