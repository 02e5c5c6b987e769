"""Tests of demonstrations: references in an agent's own tokens, as answers to its prompt."""

from dataclasses import replace

import pytest

from engine.credit.assign import TreeRecord, assign_credit
from engine.policy.host import PolicyHost
from engine.policy.types import AnswerCall, Request
from engine.problems.generator import make_problem
from engine.recipes import load_recipe
from engine.training.demonstrations import Demonstrations

PROBLEMS = [make_problem(2, number)[0] for number in range(3)]


@pytest.fixture(scope="module")
def host():
    config = settings()
    return PolicyHost([config.agents[:1]], config, seeds=[1])


def settings(**overrides):
    return load_recipe("luffy", {"agents.oak.role": "", "compute.device": "cpu", **overrides})


def shown_by(host, problems=PROBLEMS, trees=None, **overrides):
    demonstrate = Demonstrations(settings(**overrides), host, problems)
    return demonstrate("oak", trees or {7: 2, 8: 0})


def test_a_reference_is_a_whole_answer_to_the_agent_s_own_prompt(host):
    shown = shown_by(host)
    assert shown.missing == {} and list(shown.rows) == [7, 8]
    for tree, number in ((7, 2), (8, 0)):
        row, problem = shown.rows[tree], PROBLEMS[number]
        assert row.is_demonstration and (row.tree, row.advantage, row.columns) == (tree, 0.0, {})
        assert set(row.rollout_logprobs) == {0.0}
        tokenizer = host.policies["oak"].loaded.tokenizer
        assert tokenizer.decode(row.output_ids, skip_special_tokens=True) == problem.reference
        assert row.output_ids[-1] in host.policies["oak"].loaded.end_ids
        (own,) = host.answer(AnswerCall({"oak": [Request(problem)]}))["oak"]
        assert row.prompt_ids == list(own.generation.prompt_ids)


def test_what_cannot_be_shown_is_counted_with_its_reason(host):
    without = replace(PROBLEMS[0], reference=" ")
    fenced = replace(PROBLEMS[0], reference=f"```\n{PROBLEMS[0].reference}```\n")
    shown = shown_by(host, [without, fenced, PROBLEMS[0]], {1: 0, 2: 1, 3: 2})
    assert list(shown.rows) == [3]
    assert shown.missing == {"no_reference": 1, "reference_unreadable": 1}
    length = len(shown.rows[3].output_ids)
    for limit, missing in ((length, {}), (length - 1, {"reference_too_long": 1})):
        cut = {"agents.oak.sampling.max_new_tokens": limit}
        assert shown_by(host, PROBLEMS, {3: 0}, **cut).missing == missing


def test_rows_have_the_rewards_that_a_composer_reads():
    config = settings(**{"credit.overlong_buffer_tokens": 2}).credit
    tree = TreeRecord([1, 2, 3], [0, 0, 0], ["oak"] * 3, [1.0, None, 0.0], [4, 8, 8])
    credit = assign_credit(tree, config, 8, row_columns=["rewards", "group_rewards", "group_sizes"])
    assert credit.columns_of(0) == {"rewards": 1.0, "group_rewards": 0.0, "group_sizes": 2.0}
    assert credit.columns_of(2) == {"rewards": -1.0, "group_rewards": 0.0, "group_sizes": 2.0}
