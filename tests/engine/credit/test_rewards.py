"""Tests of rewards in parts: sums, gates, what a part may give, and what settings refuse."""

import numpy as np
import pytest

from engine.config.credit import CreditConfig
from engine.config.errors import ConfigError
from engine.config.methods import registry
from engine.credit.assign import TreeRecord, assign_credit
from engine.credit.rewards import REWARDS
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.parts import parts_in_use, tree_rewards
from engine.credit.rewards.reward import reward_of
from engine.events.vocabulary import Verdict
from engine.recipes import load_recipe
from engine.sandbox.host.verify import Verification
from tests.helpers.plugin_packages import a_package, installed

LIMIT = 10
PLAIN = {"shaping_gamma": 0.0, "advantage": "dr_grpo"}


def outcome(right, public=0):
    verdict = Verdict.PASSED if right else Verdict.WRONG_ANSWER
    return Verification(verdict, float(right), (None, None), public, right)


def a_tree(scores=(1.0, 0.0, 0.0), programs=("a", "", "c"), lengths=(5, 10, 8), parents=(0, 0, 1)):
    return TreeRecord(
        [1, 2, 3], parents, ["oak", "elm", "oak"], scores, lengths,
        {"outcomes": [outcome(s == 1, public) for s, public in zip(scores, (2, 0, 1), strict=True)],
         "texts": ["", "", ""], "programs": programs},
    )  # fmt: skip


def nodes(count, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 2, count).astype(float)
    return Nodes(
        ["oak"] * count, np.full(count, -1), scores, rng.integers(1, LIMIT, count),
        np.full(count, LIMIT), [outcome(score == 1, 1) for score in scores], ["text"] * count,
        ["program" if one else "" for one in rng.integers(0, 2, count)], rng.random(count),
    )  # fmt: skip


def test_a_reward_is_the_shaped_score_and_the_weighted_parts():
    config = CreditConfig(
        format={"weight": 0.5},
        concise={"weight": -0.25},
        public={"weight": 2.0},
        advantage="dr_grpo",
    )
    credit = assign_credit(a_tree(), config, LIMIT)
    assert {name: part.tolist() for name, part in credit.terms.items()} == {
        "tests": [1.5, -0.5, -0.5],  # baselines 0, 1 and 1, gamma a half
        "concise": [-0.125, 0.0, pytest.approx(-0.05)],
        "format": [0.5, 0.0, 0.5],
        "public": [2.0, 0.0, 1.0],
    }
    assert credit.shaped_N == pytest.approx([3.875, -0.5, 0.95])
    assert credit.advantages_N == pytest.approx(credit.shaped_N - credit.shaped_N.mean())
    assert not credit.gates


def test_a_gate_closes_the_score_before_it_is_shaped_and_adds_nothing():
    config = CreditConfig(format={"gate": True}, advantage="dr_grpo")
    gated = assign_credit(a_tree(programs=("", "b", "c")), config, LIMIT)
    wrong = assign_credit(a_tree(scores=(0.0, 0.0, 0.0)), CreditConfig(advantage="dr_grpo"), LIMIT)
    assert gated.shaped_N.tolist() == wrong.shaped_N.tolist() == [0.0, 0.0, 0.0]
    assert gated.gates["format"].tolist() == [0.0, 1.0, 1.0] and not gated.terms
    assert not gated.filtered and wrong.filtered, "filters see raw scores"


def test_without_parts_the_reward_is_the_shaped_score_and_nothing_is_named():
    plain = assign_credit(a_tree(), CreditConfig(), LIMIT)
    same = assign_credit(a_tree(), CreditConfig(format={"weight": 0.0}), LIMIT)
    assert plain.shaped_N.tobytes() == same.shaped_N.tobytes()
    overlong = assign_credit(a_tree(), CreditConfig(overlong_buffer_tokens=4), LIMIT)
    assert (overlong.shaped_N - plain.shaped_N).tolist() == [0.0, -1.0, -0.5]
    assert not (plain.terms or same.terms or overlong.terms or plain.gates)


def test_the_overlong_penalty_is_a_part_beside_others():
    config = CreditConfig(overlong_buffer_tokens=4, overlong_factor=0.5, format={"weight": 1.0})
    assert list(parts_in_use(config)) == ["format", "overlong"]
    terms = assign_credit(a_tree(), config, LIMIT).terms
    assert terms["overlong"].tolist() == [0.0, -0.5, -0.25]


def test_nodes_without_a_score_are_in_no_part():
    config = CreditConfig(format={"weight": 1.0, "gate": True}, **PLAIN)
    credit = assign_credit(a_tree(scores=(1.0, None, 0.0)), config, LIMIT)
    for column in (credit.shaped_N, credit.terms["format"], credit.gates["format"]):
        assert np.isnan(column).tolist() == [False, True, False]


def test_the_advantage_sees_the_parts_as_columns():
    config = CreditConfig(
        shaping_gamma=0.0, advantage="gdpo", format={"weight": 0.5}, dynamic_filter=False
    )
    tree = a_tree(scores=(1.0, 1.0, 1.0))
    advantages = assign_credit(tree, config, LIMIT).advantages_N
    format_N = np.array([1.0, 0.0, 1.0])
    expected = 0.5 * (format_N - format_N.mean()) / (format_N.std(ddof=1) + 1e-4)
    assert advantages == pytest.approx(expected)


@pytest.mark.parametrize("name", REWARDS.own)
def test_every_part_gives_one_finite_number_per_node_whatever_their_order(name):
    config = CreditConfig(overlong_buffer_tokens=4)
    options = config if REWARDS[name].in_use else registry("rewards").methods.options(name)
    options = options() if isinstance(options, type) else options
    some = nodes(7)
    values = REWARDS[name].part(some, options)
    assert values.shape == (7,) and np.isfinite(values).all()
    turned = Nodes(*(column[::-1] for column in vars(some).values()))
    assert REWARDS[name].part(turned, options) == pytest.approx(values[::-1])


FILLED = """
    import numpy as np
    from pydantic import Field
    from engine.credit.rewards.reward import PartOptions

    class Options(PartOptions):
        "Filled."
        count: int = Field(3, ge=1, le=9)
        "Number of values."
        value: float = Field(1.0, ge=-9, le=9)
        "Each value, before its division."
        divisor: float = Field(1.0, ge=-9, le=9)
        "What it is divided by."

    def part(nodes, options):
        with np.errstate(all="ignore"):
            return np.full(options.count, options.value) / options.divisor
"""
"""A part of another package that gives what its options say."""


@pytest.fixture
def filled(tmp_path):
    points = {"grove.rewards": {"filled": "grove_toy.filled"}}
    with installed(a_package(tmp_path, {"filled": FILLED}, points)):
        yield lambda **options: tree_rewards(nodes(3), CreditConfig(filled=options, **PLAIN))


@pytest.mark.parametrize("options", [{"count": 1}, {"divisor": 0.0}])
def test_a_part_that_gives_no_number_for_a_node_stops_the_step_by_its_name(filled, options):
    with pytest.raises(ValueError, match=r"credit\.filled: the part gives .* for 3 nodes"):
        filled(weight=1.0, **options)
    assert filled(**options).terms == {}, "it is not used"


@pytest.mark.parametrize("value", [1.5, -0.5])
def test_a_gate_that_is_no_share_stops_the_step_by_its_name(filled, value):
    with pytest.raises(ValueError, match=r"credit\.filled\.gate = true: .* from 0 to 1"):
        filled(gate=True, value=value)
    assert filled(weight=2.0, value=value).terms["filled"].tolist() == [2 * value] * 3


def test_a_part_without_a_value_counts_nothing(filled):
    rewards = filled(weight=1.0, value=0.0, divisor=0.0)
    assert rewards.total_N.tolist() == rewards.parts["tests"].tolist() == nodes(3).scores_N.tolist()


def test_a_score_may_be_a_part_and_a_part_is_no_score():
    assert load_recipe("demo", {"credit.score": "public"}).credit.score == "public"
    for name in ("format", "overlong"):
        with pytest.raises(ConfigError, match=f"credit.score = .{name}.: is a part"):
            load_recipe("demo", {"credit.score": name})
    assert {"binary", "fraction", "public"} == set(registry("rewards").names())


def test_a_module_is_a_reward_only_with_a_score_or_a_weighted_part():
    class Neither:
        pass

    class Unweighted:
        part = staticmethod(len)

    with pytest.raises(ValueError, match="neither score"):
        reward_of(Neither)
    with pytest.raises(ValueError, match=r"extend .*PartOptions"):
        reward_of(Unweighted)
