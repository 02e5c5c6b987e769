import json

import numpy as np
import pytest

from engine.config.credit import CreditConfig
from engine.credit import ADVANTAGES
from engine.credit.assign import TreeRecord, assign_credit
from engine.credit.columns import Group, columns_of
from engine.credit.filters import informative
from engine.credit.group import BatchContext, GroupContext
from engine.credit.rewards.overlong import overlong_penalty
from engine.environments.types import Played
from engine.events.states import Verdict
from engine.memory.protocol import OnFork

GROUP_METHODS = sorted(
    name
    for name, method in ADVANTAGES.items()
    if not (method.over_batch or method.memory or method.over_tokens or method.row_columns)
)
"""Those that compare the nodes of one tree, and nothing else."""


def over_group(method, rewards, agents=None):
    """Of a flat group of the right, each with the columns that the method needs."""
    rewards = np.array(rewards, dtype=float)
    count = len(rewards)
    flat = TreeRecord(
        node_ids=range(1, count + 1),
        parents=[0] * count,
        agents=agents or ["oak"] * count,
        scores=[1.0] * count,
        lengths=[4] * count,
        further={
            "problems": [7] * count,
            "owners": agents or ["oak"] * count,
            "pass_rates": [0.5] * count,
            "prompts": [[1, 2]] * count,
            "tokens": [[3, 4, 5, 6]] * count,
            "logprobs": [[-0.5] * 4] * count,
            "outcomes": [Played(Verdict.PASSED)] * count,
            "programs": [f"x = {number}" for number in range(count)],
        },
    )
    needed = columns_of(Group(flat, range(count), [8] * count), ADVANTAGES[method].needs)
    options = CreditConfig(advantage=method).options("advantage")
    return ADVANTAGES[method].over_group(rewards, GroupContext(needed, options))


@pytest.mark.parametrize("method", GROUP_METHODS)
def test_advantages_have_mean_zero(method):
    rng = np.random.default_rng(0)
    for _ in range(50):
        rewards = rng.normal(size=rng.integers(2, 40))
        result = over_group(method, rewards)
        assert result.mean() == pytest.approx(0.0, abs=1e-12)
        assert np.array_equal(np.argsort(result), np.argsort(rewards))


@pytest.mark.parametrize("method", GROUP_METHODS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 1.5])
def test_equal_rewards_give_no_advantage(method, value):
    for count in (1, 3, 7, 8):
        result = over_group(method, np.full(count, value))
        assert result == pytest.approx(np.zeros(count), abs=1e-12)


def test_mars2_does_not_blow_up_rounding_errors():
    assert over_group("mars2", np.full(7, 0.1)).tolist() == [0.0] * 7


def test_mars2_advantages_have_unit_deviation():
    result = over_group("mars2", np.random.default_rng(1).normal(size=20))
    assert result.std(ddof=1) == pytest.approx(1.0)


def test_rloo_is_the_scaled_centred_reward():
    rewards = np.random.default_rng(2).random(8)
    rloo, centred = (over_group(m, rewards) for m in ("rloo", "dr_grpo"))
    assert rloo == pytest.approx(centred * 8 / 7)


def test_grpo_and_mars2_differ_by_their_small_constants_only():
    rewards = np.random.default_rng(3).random(9)
    centred, spread = rewards - rewards.mean(), rewards.std(ddof=1)
    assert np.allclose(over_group("grpo", rewards), centred / (spread + 1e-6), rtol=1e-14)
    assert np.allclose(over_group("mars2", rewards), centred / (spread + 1e-9), rtol=1e-14)


def test_per_agent_compares_each_agent_with_itself():
    agents = ["oak", "elm", "oak", "elm", "oak", "ash"]
    rewards = [1.0, 10.0, 2.0, 20.0, 6.0, 5.0]
    result = over_group("per_agent", rewards, agents)
    assert result[[0, 2, 4]] == pytest.approx(over_group("grpo", [1.0, 2.0, 6.0]))
    assert result[[1, 3]] == pytest.approx([-(0.5**0.5), 0.5**0.5])
    assert result[5] == 0
    assert over_group("per_agent", rewards) == pytest.approx(over_group("grpo", rewards))


def test_reinforce_pp_normalises_over_the_tokens_of_a_step():
    rewards, lengths = np.array([1.0, 0.0, 0.0, 1.0, 0.5]), np.array([3, 1, 2, 5, 4])
    assert over_group("reinforce_pp", rewards).tolist() == rewards.tolist()
    result = ADVANTAGES["reinforce_pp"].over_batch(rewards, BatchContext({"lengths": lengths}))
    tokens = np.repeat(rewards, lengths)
    assert result == pytest.approx((rewards - tokens.mean()) / tokens.std())
    assert np.repeat(result, lengths).std() == pytest.approx(1.0)
    equal = ADVANTAGES["reinforce_pp"].over_batch(
        np.full(5, 0.1), BatchContext({"lengths": lengths})
    )
    assert equal.tolist() == [0.0] * 5


def test_the_overlong_penalty_grows_over_the_buffer_and_stops_at_the_limit():
    lengths = np.array([0, 6, 7, 8, 10, 12])
    assert overlong_penalty(lengths, 10, 4, 2.0).tolist() == [0, 0, -0.5, -1, -2, -2]
    assert overlong_penalty(lengths, 10, 0, 2.0).tolist() == [0] * 6


def test_the_overlong_limit_may_differ_by_node():
    result = overlong_penalty(np.array([8, 8]), np.array([8, 16]), 4, 1.0)
    assert result.tolist() == [-1, 0]


def test_only_trees_between_the_ends_are_informative():
    assert [informative(s) for s in ([0, 0], [1, 1], [0, 1], [0.5], [])] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert not informative([0.2, 0.2], low=0.2, high=0.8)
    assert informative([0.2, 0.3], low=0.2, high=0.8)


def test_rae_compares_each_answer_with_what_its_role_got_before():
    config = CreditConfig(advantage="rae", rae={"decay": 0.5}, shaping_gamma=0.0)
    memory = ADVANTAGES["rae"].memory(config)
    record = TreeRecord([1, 2, 3], [0, 0, 1], ["oak", "fern", "oak"], [1.0, None, 0.0], [5, 5, 5])
    credit = assign_credit(record, config, 10, memory)
    assert credit.advantages_N[[0, 2]].tolist() == [1.0, -0.5] and np.isnan(credit.advantages_N[1])
    assert memory.baselines == {"oak": 0.25}
    solved = TreeRecord([1], [0], ["oak"], [1.0], [5])
    assert assign_credit(solved, config, 10, memory).advantages_N.tolist() == [0.75]
    resumed = ADVANTAGES["rae"].memory(config)
    resumed.restore(json.loads(json.dumps(memory.state())))
    assert resumed.state() == memory.state() == {"baselines": {"oak": 0.625}}
    assert memory.on_fork is OnFork.KEEP
    # Without a run's memory a tree is credited by itself.
    assert assign_credit(solved, config, 10).advantages_N.tolist() == [1.0]
