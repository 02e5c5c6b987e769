"""Tests that statements which fit into no prompt are left out before a run, with their reason."""

import pytest

from engine.policy.host import PolicyHost
from engine.policy.types import AnswerCall, Request
from engine.problems.errors import DatasetError
from engine.problems.load import RowLocation
from engine.problems.problem import CallTest, Problem
from engine.problems.source import ProblemSet
from engine.training.statement_check import without_long_statements
from tests.helpers.policies import tiny_config, tiny_policy

TEST = (CallTest((1,), 2),)


def problem(name, statement):
    return Problem(name, statement, "grind", TEST, TEST)


SHORT = [problem(f"mill-{n}", f"Write grind(x), which returns x plus {n}.") for n in range(4)]
LONG = problem(
    "log", "The log of the mill: " + " ".join(f"sack {n} of {n * n};" for n in range(99))
)
SIGNS = problem("signs", "\u00e4" * 300)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    config = tiny_config(tiny_policy(tmp_path_factory.mktemp("model")))
    return PolicyHost([config.agents], config, [0])


def test_a_statement_is_too_long_exactly_if_its_prompt_is_refused(host):
    for one in (*SHORT, LONG, SIGNS):
        reasons = host.too_long([one.statement])
        try:
            host.answer(AnswerCall({"agent-0": [Request(one)]}))
        except ValueError as error:
            assert "its statement takes" in str(error) and list(reasons) == [0]
            assert "more than agents.agent-0.sampling.max_prompt_tokens = 200" in reasons[0]
        else:
            assert reasons == {}
    assert list(host.too_long([SHORT[0].statement, LONG.statement, SIGNS.statement])) == [1, 2]


def a_set(train, test):
    every = [*train, *test]
    places = {one.id: RowLocation("mill.jsonl", n) for n, one in enumerate(every, 1)}
    return ProblemSet(train, [SHORT[0]], test, [], places | {SHORT[0].id: RowLocation("v", 1)})


def test_they_are_left_out_of_every_split_and_counted(host):
    problems = a_set([SHORT[1], LONG, SHORT[2]], [SHORT[3], SIGNS])
    left = without_long_statements(problems, host.too_long)
    assert left.train == [SHORT[1], SHORT[2]] and left.test == [SHORT[3]]
    assert left.validation == [SHORT[0]]
    assert [issue.value for issue in left.left_out] == ["log", "signs"]
    assert str(left.left_out[0]).startswith("mill.jsonl:2")
    assert "takes" in str(left.left_out[0]) and "a new run with a larger limit" in str(
        left.left_out[0]
    )


def test_a_split_of_long_statements_alone_is_refused(host):
    with pytest.raises(DatasetError, match="takes"):
        without_long_statements(a_set([LONG], SHORT[1:]), host.too_long)
