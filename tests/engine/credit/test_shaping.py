import numpy as np
import pytest

from engine.credit.shaping import tree_shaping


def one_by_one(rewards, parents, gamma, lambda_):
    """The formula of docs/algorithm.md, section 5, node by node."""
    shaped = []
    for v, (reward, parent) in enumerate(zip(rewards, parents, strict=True)):
        others = [rewards[u] for u in range(len(rewards)) if parents[u] == parent and u != v]
        if parent == -1 and not others:
            shaped.append(reward)
            continue
        if parent == -1:
            baseline = np.mean(others)
        elif not others:
            baseline = rewards[parent]
        else:
            baseline = (1 - lambda_) * rewards[parent] + lambda_ * np.mean(others)
        shaped.append(reward + gamma * (reward - baseline))
    return shaped


@pytest.mark.parametrize("seed", range(30))
def test_any_tree_is_shaped_as_the_formula_says(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    parents = np.array([rng.integers(-1, v) if v else -1 for v in range(count)])
    rewards, gamma, lambda_ = rng.random(count), rng.random(), rng.random()
    expected = one_by_one(rewards, parents, gamma, lambda_)
    assert tree_shaping(rewards, parents, gamma, lambda_) == pytest.approx(expected)

    order = rng.permutation(count)  # parents may come after their children
    index = np.argsort(order)
    moved = np.where(parents[order] == -1, -1, index[parents[order]])
    result = tree_shaping(rewards[order], moved, gamma, lambda_)
    assert result == pytest.approx(np.array(expected)[order])


def test_gamma_zero_changes_nothing():
    rewards = np.array([0.0, 1.0, 1.0, 0.5])
    parents = np.array([-1, -1, 0, 0])
    assert tree_shaping(rewards, parents, 0.0, 0.5).tolist() == rewards.tolist()


def test_an_only_child_of_the_root_is_left_as_it_is():
    assert tree_shaping([1.0], [-1], 0.5, 0.5).tolist() == [1.0]


def test_a_repair_gains_what_it_adds_to_its_parent():
    assert tree_shaping([0.0, 1.0], [-1, 0], 0.5, 0.5).tolist() == [0.0, 1.5]


def test_raw_rewards_are_in_the_baseline_and_the_input_stays():
    rewards = np.array([1.0, 0.0, 1.0, 1.0])
    shaped = tree_shaping(rewards, np.array([-1, -1, 1, 2]), 0.5, 0.5)
    assert shaped.tolist() == [1.5, -0.5, 1.5, 1.0]
    assert rewards.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_an_empty_tree_has_empty_rewards():
    assert tree_shaping(np.array([]), np.array([]), 0.5, 0.5).shape == (0,)


def test_impossible_trees_are_refused():
    with pytest.raises(ValueError, match="position below 2"):
        tree_shaping([1.0, 0.0], [-1, 2], 0.5, 0.5)
    with pytest.raises(ValueError, match="position below 2"):
        tree_shaping([1.0, 0.0], [-2, 0], 0.5, 0.5)
    with pytest.raises(ValueError, match="one each"):
        tree_shaping([1.0, 0.0], [-1], 0.5, 0.5)
