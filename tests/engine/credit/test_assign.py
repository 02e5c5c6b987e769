import numpy as np
import pytest

from engine.config.credit import CreditConfig
from engine.credit.assign import TreeRecord, assign_credit, credit_batch
from engine.credit.shaping import tree_shaping


def record(scores, parents=None, agents=None, lengths=None, node_ids=None):
    count = len(scores)
    return TreeRecord(
        node_ids=node_ids or list(range(1, count + 1)),
        parents=parents or [0] * count,
        agents=agents or ["oak", "elm"] * (count // 2) + ["oak"] * (count % 2),
        scores=scores,
        lengths=lengths or [10] * count,
    )


def test_credit_is_shaped_and_then_normalised_over_the_whole_tree():
    credit = assign_credit(record([1, 0, 0, 1], parents=[0, 0, 1, 1]), CreditConfig(), 100)
    assert credit.shaped_N.tolist() == [1.5, -0.5, -0.5, 1.25]
    expected = [0.97716212, -0.86220187, -0.86220187, 0.74724162]
    assert credit.advantages_N == pytest.approx(expected)
    assert not credit.filtered


def test_the_penalty_comes_after_shaping_and_before_the_advantage():
    config = CreditConfig(overlong_buffer_tokens=4, overlong_factor=0.5, advantage="dr_grpo")
    credit = assign_credit(record([1, 0], lengths=[10, 8]), config, 10)
    assert credit.shaped_N.tolist() == [1.5 - 0.5, -0.5 - 0.25]
    assert credit.advantages_N.tolist() == [0.875, -0.875]


def test_each_node_may_have_its_own_limit():
    config = CreditConfig(overlong_buffer_tokens=4, shaping_gamma=0.0)
    credit = assign_credit(record([1, 0], lengths=[10, 10]), config, [10, 20])
    assert credit.shaped_N.tolist() == [0.0, 0.0]


def test_nodes_without_a_score_change_nothing_for_the_others():
    whole = assign_credit(record([1, 0, 1], parents=[0, 0, 2]), CreditConfig(), 100)
    with_failed = record([1, None, 0, 1, None], parents=[0, 0, 0, 3, 3])
    credit = assign_credit(with_failed, CreditConfig(), 100)
    kept = [0, 2, 3]
    assert credit.shaped_N[kept] == pytest.approx(whole.shaped_N)
    assert credit.advantages_N[kept] == pytest.approx(whole.advantages_N)
    for column in (credit.shaped_N, credit.advantages_N):
        assert np.isnan(column[[1, 4]]).all()


def test_the_order_and_the_ids_of_the_nodes_do_not_matter():
    rng = np.random.default_rng(0)
    parents = [int(rng.integers(0, i + 1)) for i in range(12)]
    scores = [float(rng.random()) for _ in parents]
    straight = assign_credit(record(scores, parents), CreditConfig(), 100)
    assert straight.shaped_N == pytest.approx(
        tree_shaping(np.array(scores), np.array(parents) - 1, 0.5, 0.5)
    )
    order = rng.permutation(12)
    mixed = record(
        [scores[i] for i in order],
        [parents[i] for i in order],
        node_ids=[int(i) + 1 for i in order],
    )
    credit = assign_credit(mixed, CreditConfig(), 100)
    assert credit.advantages_N == pytest.approx(straight.advantages_N[order])


@pytest.mark.parametrize(("scores", "filtered"), [([1, 1], True), ([0, 0], True), ([0, 1], False)])
def test_trees_without_reward_variance_are_filtered_when_enabled(scores, filtered):
    assert assign_credit(record(scores), CreditConfig(), 100).filtered is filtered
    assert not assign_credit(record(scores), CreditConfig(dynamic_filter=False), 100).filtered


def test_a_tree_in_which_everything_failed_is_filtered_always():
    credit = assign_credit(record([None, None]), CreditConfig(dynamic_filter=False), 100)
    assert credit.filtered and np.isnan(credit.advantages_N).all()
    assert assign_credit(record([]), CreditConfig(), 100).filtered


def test_broken_records_are_refused():
    with pytest.raises(ValueError, match="of a scored node has no score"):
        assign_credit(record([None, 1.0], parents=[0, 1]), CreditConfig(), 100)
    with pytest.raises(ValueError, match="one value per node"):
        assign_credit(record([0, 1], parents=[0]), CreditConfig(), 100)


def credited(trees, **settings):
    config = CreditConfig(shaping_gamma=0.0, **settings)
    return credit_batch([assign_credit(tree, config, 100) for tree in trees], config)


def test_a_method_over_a_batch_sees_the_kept_trees_of_a_step_as_one():
    trees = [
        record([1, None, 0], lengths=[2, 9, 4]),
        record([1, 1], lengths=[5, 5]),
        record([0, 1, 1], lengths=[1, 3, 6]),
    ]
    credits = credited(trees, advantage="reinforce_pp")
    assert [credit.filtered for credit in credits] == [False, True, False]
    kept = np.array([1, 0, 0, 1, 1.0])
    tokens = np.repeat(kept, [2, 4, 1, 3, 6])
    expected = (kept - tokens.mean()) / tokens.std()
    assert credits[0].advantages_N[[0, 2]] == pytest.approx(expected[:2])
    assert np.isnan(credits[0].advantages_N[1])
    assert credits[1].advantages_N.tolist() == [0, 0]
    assert credits[2].advantages_N == pytest.approx(expected[2:])

    everything = credited(trees, advantage="reinforce_pp", dynamic_filter=False)
    assert (everything[1].advantages_N > 0).all()
    assert everything[1].shaped_N.tolist() == [1, 1]


def test_a_step_without_a_tree_to_learn_from_has_no_batch():
    trees = [record([1, 1]), record([None, None])]
    first, second = credited(trees, advantage="reinforce_pp")
    assert first.filtered and second.filtered
    assert np.isnan(second.advantages_N).all()


def test_a_method_over_groups_is_not_touched_by_the_other_trees():
    trees = [record([1, 0, 0]), record([1, 1, 0])]
    config = CreditConfig()
    for tree, credit in zip(trees, credited(trees), strict=True):
        alone = assign_credit(tree, config.model_copy(update={"shaping_gamma": 0.0}), 100)
        assert credit.advantages_N.tolist() == alone.advantages_N.tolist()
