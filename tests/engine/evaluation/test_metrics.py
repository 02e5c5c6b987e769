from itertools import combinations
from math import sqrt

import numpy as np
import pytest

from engine.evaluation.diversity import area_under_distinct, distinct_at_k, effective_clusters
from engine.evaluation.metrics import pass_at_k, standard_error, tree_outcome
from engine.inference.selection import Candidate, rank_answers, select_answer
from engine.problems.paired import paired_bootstrap


def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one():
    for n, correct in [(5, 2), (6, 1), (4, 0), (4, 4)]:
        for k in range(1, n + 1):
            draws = list(combinations(range(n), k))
            hits = sum(any(i < correct for i in draw) for draw in draws)
            assert pass_at_k(n, correct, k) == pytest.approx(hits / len(draws))
    with pytest.raises(ValueError, match="k <= n"):
        pass_at_k(4, 1, 5)


def test_distinct_at_k_is_the_mean_number_of_clusters_in_a_draw():
    sizes = [3, 2, 1]
    label = [m for m, size in enumerate(sizes) for _ in range(size)]
    for k in range(1, 7):
        draws = list(combinations(label, k))
        mean = np.mean([len(set(draw)) for draw in draws])
        assert distinct_at_k(sizes, k) == pytest.approx(mean)
    assert distinct_at_k(sizes, 50) == 3.0


def test_diversity_counts_equal_clusters_as_themselves():
    assert effective_clusters([2, 2, 2]) == pytest.approx(3.0)
    assert effective_clusters([8]) == pytest.approx(1.0)
    assert area_under_distinct([8], 8) == pytest.approx(1.0)
    assert area_under_distinct([4, 4], 1) == 1.0


def test_the_answer_is_the_best_on_public_tests_and_then_the_latest():
    nodes = [Candidate(1, 1.0), Candidate(2, 0.5), Candidate(3, 1.0), Candidate(4, None)]
    assert select_answer(nodes) == nodes[2]
    assert [c.node for c in rank_answers(nodes)] == [3, 1, 2]
    assert select_answer([Candidate(1, None)]) is None
    assert select_answer([]) is None


def test_a_tree_is_judged_by_the_selected_node_only():
    outcome = tree_outcome([1.0, None, 0.5], [0.0, 1.0, 1.0])
    assert (outcome.pass1_tree, outcome.pass_n) == (0.0, 1.0)
    assert outcome.mean_private_over_public_perfect == 0.0
    assert tree_outcome([1.0, None, 0.5], [0.0, 1.0, 1.0], top_k=2).pass1_tree == 1.0
    assert tree_outcome([None], [1.0]).pass_n == 0.0


def test_the_standard_error_of_shares_is_the_binomial_one():
    values = [1.0] * 105 + [0.0] * 70
    assert standard_error(values) == pytest.approx(sqrt(0.6 * 0.4 / 174))
    assert standard_error([1.0]) == 0.0


def test_the_bootstrap_covers_the_true_difference_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(100):
        a = (rng.random(80) < 0.4).astype(float)
        b = np.where(rng.random(80) < 0.3, (rng.random(80) < 0.7).astype(float), a)
        interval = paired_bootstrap(a, b, rng, resamples=300)
        covered += interval.low <= 0.3 * (0.7 - 0.4) <= interval.high
        assert interval.low <= interval.difference <= interval.high
    assert covered >= 87


def test_the_bootstrap_pairs_problems():
    values = np.random.default_rng(1).random(50)
    interval = paired_bootstrap(values, values + 0.1, np.random.default_rng(2), resamples=200)
    assert (interval.low, interval.high) == pytest.approx((0.1, 0.1))
    with pytest.raises(ValueError, match="same problems"):
        paired_bootstrap([1.0], [1.0, 0.0], np.random.default_rng(0))
