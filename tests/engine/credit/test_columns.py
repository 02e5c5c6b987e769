"""Tests of the columns of groups and batches, and of advantages by token."""

import numpy as np
import pytest

from engine.config.columns import EMBEDDING_WIDTH, NODE_COLUMNS, REWARD_COLUMNS, ROW_COLUMNS
from engine.config.credit import CreditConfig
from engine.config.methods import Figure
from engine.credit import ADVANTAGES
from engine.credit.assign import assign_credit, credit_batch
from engine.credit.columns import MAKERS, Group, TreeRecord, columns_of, concatenated
from engine.credit.embeddings import embeddings
from engine.credit.group import GroupContext, advantage_of
from engine.environments.types import Played
from engine.events.states import Verdict

PLAYED, PASSED = Verdict.PLAYED, Verdict.PASSED

TOKENS = [[5, 6, 7], [5, 6, 8, 9], [5, 9], [4]]


def record(scores, parents=(0, 0, 0, 1), tokens=TOKENS):
    count = len(scores)
    return TreeRecord(
        node_ids=[1, 2, 3, 4],
        parents=list(parents),
        agents=["oak", "fern", "oak", "fern"],
        scores=scores,
        lengths=[len(one) for one in tokens],
        further={
            "problems": [17] * count,
            "owners": ["oak"] * count,
            "prompts": [[1, 2]] * 3 + [[1, 2, 5]],
            "tokens": tokens,
            "logprobs": [[-0.5] * len(one) for one in tokens],
            "entropies": [np.full(len(one), 1.5, np.float32) for one in tokens],
            "pass_rates": [0.25] * count,
            "programs": ["a", "b", "", "d"],
            "outcomes": [Played(PLAYED), Played(PASSED), Played(PASSED), Played(PASSED)],
        },
    )


def plain(column):
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in column]


def test_one_function_makes_every_column_of_the_scored_nodes():
    tree = record([1.0, 0.0, None, 0.5])
    columns = columns_of(Group(tree, [0, 1, 3], [8, 9, 8, 9]), NODE_COLUMNS)
    vectors = columns.pop("embeddings")
    assert vectors.dtype == np.float32 and vectors.shape == (3, EMBEDDING_WIDTH)
    assert {name: plain(column) for name, column in columns.items()} == {
        "agents": ["oak", "fern", "fern"], "owners": ["oak"] * 3, "problems": [17] * 3,
        "parents": [-1, -1, 0], "depths": [1, 1, 2], "scores": [1.0, 0.0, 0.5],
        "lengths": [3, 4, 1], "limits": [8, 9, 9], "turns": [1, 1, 2],
        "pass_rates": [0.25] * 3, "programs": ["a", "b", "d"],
        "prompts": [[1, 2], [1, 2], [1, 2, 5]], "tokens": [[5, 6, 7], [5, 6, 8, 9], [4]],
        "logprobs": [[-0.5] * 3, [-0.5] * 4, [-0.5]],
        "entropies": [[1.5] * 3, [1.5] * 4, [1.5]],
    }  # fmt: skip
    own = ROW_COLUMNS - REWARD_COLUMNS.keys()
    assert MAKERS.keys() == NODE_COLUMNS.keys() > own and REWARD_COLUMNS.keys() < ROW_COLUMNS
    assert all(columns[name].dtype.kind in "if" for name in own)


def test_a_batch_is_its_groups_one_after_the_other():
    group = columns_of(Group(record([1.0, 0.0, None, 0.5]), [0, 1, 3], [8] * 4), NODE_COLUMNS)
    other = columns_of(Group(record([None, 0.0, 1.0, None]), [1, 2], [8] * 4), NODE_COLUMNS)
    together = concatenated([group, other, group])
    assert together["parents"].tolist() == [-1, -1, 0, -1, -1, -1, -1, 5]
    assert together["scores"].tolist() == [1.0, 0.0, 0.5, 0.0, 1.0, 1.0, 0.0, 0.5]
    assert plain(together["tokens"])[3:5] == [[5, 6, 8, 9], [5, 9]]
    assert together["embeddings"].shape == (8, EMBEDDING_WIDTH)
    assert concatenated([]) == {}


def test_a_method_has_the_columns_that_it_names_and_no_others():
    class Method:
        NEEDS = {"lengths"}

        @staticmethod
        def over_group(rewards_N, context):
            assert set(context.columns) == {"lengths"}
            return rewards_N / context["lengths"]

    ADVANTAGES["by_length"] = advantage_of(Method)
    try:
        config = CreditConfig(advantage="by_length", shaping_gamma=0.0)
        credit = assign_credit(record([1.0, 0.0, 1.0, 0.0]), config, 9)
    finally:
        del ADVANTAGES["by_length"]
    assert credit.advantages_N.tolist() == [1 / 3, 0, 1 / 2, 0]
    with pytest.raises(KeyError, match="no column 'lengths': name it in NEEDS"):
        ADVANTAGES["reinforce_pp"].over_batch(np.arange(2.0), GroupContext())


class Novelty:
    """Centred rewards times how unlike the others of the tree a program is; a right program of the
    step that is much like an earlier one gets nothing."""

    NEEDS = {"embeddings"}

    @staticmethod
    def over_group(rewards_N, context):
        alike_NN = context["embeddings"] @ context["embeddings"].T
        others_N = (alike_NN.sum(axis=1) - alike_NN.diagonal()) / (len(rewards_N) - 1)
        return (rewards_N - rewards_N.mean()) * (1.0 - others_N)

    @staticmethod
    def over_batch(advantages_N, context):
        alike_NN = context["embeddings"] @ context["embeddings"].T
        return np.where(np.tril(alike_NN > 0.99, -1).any(axis=1), 0.0, advantages_N)


def test_an_advantage_compares_programs_by_their_embeddings():
    ADVANTAGES["novelty"] = advantage_of(Novelty)
    try:
        config = CreditConfig(advantage="novelty", shaping_gamma=0.0)
        # Of the five features of "a" and of "b" four are the same; without a program there is none.
        trees = [record([1.0, 0.0, 0.0, None]), record([0.0, 1.0, 0.0, None])]
        alone = [assign_credit(tree, config, 9) for tree in trees]
        credits = credit_batch(alone, config)
    finally:
        del ADVANTAGES["novelty"]
    unlike_N = 1 - np.array([0.8, 0.8, 0.0]) / 2
    centred = [np.array([2, -1, -1]) / 3, np.array([-1, 2, -1]) / 3]
    for credit, centred_N in zip(alone, centred, strict=True):
        assert credit.advantages_N[:3] == pytest.approx(centred_N * unlike_N, abs=1e-6)
    assert credits[0].advantages_N[:3] == pytest.approx(centred[0] * unlike_N, abs=1e-6)
    assert credits[1].advantages_N[:3] == pytest.approx([0.0, 0.0, -1 / 3], abs=1e-6)


@pytest.mark.parametrize(
    "program",
    ["f" + "(" * 5000, "x = 0x" + "f" * 9000, "x = '\ud800'", "a = '\x00", "é ∑ (", "\n "],
)
def test_every_text_has_an_embedding(program):
    (vector,) = embeddings([program])
    assert np.linalg.norm(vector) == pytest.approx(1.0 if program.strip() else 0.0)
    assert (embeddings([program, "x", program])[2] == vector).all()


def over_group(rewards_N, context):
    return rewards_N


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        ({"NEEDS": {"lengths", "speed"}}, "NEEDS has speed; choose among agents, depths"),
        ({"NEEDS": "lengths"}, "NEEDS is 'lengths', not a set"),
        ({"MAKES": {"mark"}}, "MAKES and the function row_columns"),
        ({"FIGURES": {"mark": Figure("Marks")}}, "FIGURES and the function figures"),
    ],
)
def test_a_method_with_impossible_columns_is_refused(attributes, fault):
    module = type("Module", (), {"over_group": staticmethod(over_group), **attributes})
    with pytest.raises(ValueError, match=fault):
        advantage_of(module)


def figures_by(numbers):
    """An advantage that reports these numbers of a tree's nodes."""
    attributes = {
        "over_group": staticmethod(over_group),
        "figures": staticmethod(lambda rewards_N, advantages_N, context: numbers(rewards_N)),
        "FIGURES": {"double": Figure("Twice the reward")},
    }
    return advantage_of(type("Module", (), attributes))


def test_an_advantage_reports_numbers_of_its_nodes_which_are_aligned_with_the_tree():
    config = CreditConfig(advantage="reporting", shaping_gamma=0.0)
    tree = record([1.0, None, 0.25, 0.5])
    try:
        ADVANTAGES["reporting"] = figures_by(lambda rewards_N: {"double": 2 * rewards_N})
        (credit,) = credit_batch([assign_credit(tree, config, 9)], config)
        assert credit.figures["double"][[0, 2, 3]].tolist() == [2.0, 0.5, 1.0]
        assert np.isnan(credit.figures["double"][1])
        ADVANTAGES["reporting"] = figures_by(lambda rewards_N: {"double": rewards_N[:2]})
        with pytest.raises(ValueError, match=r"double has the shape \(2,\); give one .* of 3"):
            assign_credit(tree, config, 9)
        ADVANTAGES["reporting"] = figures_by(lambda rewards_N: {"half": rewards_N})
        with pytest.raises(ValueError, match="half is not in its FIGURES"):
            assign_credit(tree, config, 9)
    finally:
        del ADVANTAGES["reporting"]


def test_a_column_that_a_record_lacks_is_named():
    tree = TreeRecord([1, 2], [0, 0], ["oak"] * 2, [1.0, 0.0], [3, 3])
    with pytest.raises(ValueError, match=r"records no (owners|prompts|tokens)"):
        assign_credit(tree, CreditConfig(advantage="tempo"), 8)
    uneven = TreeRecord([1], [0], ["oak"], [1.0], [3], {"tokens": []})
    with pytest.raises(ValueError, match="one value per node"):
        assign_credit(uneven, CreditConfig(), 8)


def test_tokens_have_advantages_of_their_own_and_a_node_their_mean():
    config = CreditConfig(advantage="tempo", shaping_gamma=0.0)
    first = assign_credit(record([1.0, 0.0, 0.0, None]), config, 9)
    alike = assign_credit(record([1.0, 1.0, 1.0, None]), config, 9)
    credit, dropped = credit_batch([first, alike], config)
    std = np.std([1, 0, 0], ddof=1) + 1e-6
    # V is 1/3 before and after 5, 1/2 after 5 6, then the node's own.
    steps = [[0, 1 / 6, 1 / 2], [0, 1 / 6, -1 / 2, 0], [0, -1 / 3]]
    for place, (reward, own) in enumerate(zip([1, 0, 0], steps, strict=True)):
        expected = (reward - 1 / 3 + np.array(own)) / std
        assert credit.advantage_of(place) == pytest.approx(expected.tolist())
        assert credit.advantages_N[place] == pytest.approx(expected.mean())
    assert np.isnan(credit.advantages_N[3]) and len(credit.token_advantages[3]) == 0
    assert dropped.filtered and dropped.advantage_of(0) == 0.0
    # A repair answers another prompt: it is in no prefix of the others, though in mean and std.
    (repaired,) = credit_batch([assign_credit(record([1.0, 0.0, 0.0, 1.0]), config, 9)], config)
    std = np.std([1, 0, 0, 1], ddof=1) + 1e-6
    assert repaired.advantage_of(0) == pytest.approx(((0.5 + np.array(steps[0])) / std).tolist())
    assert repaired.advantage_of(3) == pytest.approx(0.5 / std)


def test_rows_carry_what_the_loss_needs():
    config = CreditConfig(advantage="rl_zvp", dynamic_filter=False, shaping_gamma=0.0)
    needed = ["depths", "scores", "zero_variance"]
    for scores, mark in (([1.0, 1.0, None, 1.0], 1), ([0.0] * 4, -1), ([1.0, 0.0, 0.5, 0.5], 0)):
        credit = assign_credit(record(scores), config, 9, row_columns=needed)
        assert credit.columns_of(3) == {
            "depths": 2.0, "scores": scores[3], "zero_variance": float(mark),
        }  # fmt: skip
        assert (credit.advantages_N[[0, 1, 3]] == 0).all() == (mark != 0)
    assert np.isnan(assign_credit(record(scores), config, 9).advantages_N).sum() == 0
    fractions = assign_credit(record([0.5] * 4), config, 9, row_columns=needed)
    assert fractions.columns_of(0)["zero_variance"] == 0 and not fractions.advantages_N.any()


def test_lite_ppo_divides_by_the_deviation_of_the_step():
    config = CreditConfig(advantage="lite_ppo", shaping_gamma=0.0)
    trees = [record([1.0, 0.0, 0.0, None]), record([1.0] * 4), record([1.0, 0.5, 1.0, 1.0])]
    credits = credit_batch([assign_credit(tree, config, 9) for tree in trees], config)
    std = np.std([1, 0, 0, 1, 0.5, 1, 1], ddof=1) + 1e-6  # not of the tree that is filtered
    assert credits[0].advantages_N[:3] == pytest.approx((np.array([1, 0, 0]) - 1 / 3) / std)
    assert credits[1].advantages_N.tolist() == [0.0] * 4
    assert credits[2].advantages_N == pytest.approx((np.array([1, 0.5, 1, 1]) - 0.875) / std)
