"""Tests that answers requested one by one equal those generated in one call."""

import pytest

from engine.policy.host import PolicyHost
from engine.policy.types import AnswerCall, Request
from tests.engine.policy.test_groups import (
    FEEDBACK,
    PROBLEM,
    ROLES,
    host_of,
    models,
    rows_of,
    run_of,
)

__all__ = ["models"]
NAMES = ("solver", "critic", "hot")
ASKED = {
    number: (NAMES[number % 3], Request(PROBLEM, FEEDBACK if number % 2 else None, (7, number)))
    for number in range(12)
}


@pytest.fixture
def agents(models):
    return [{**ROLES[0], "model": str(models[0])}, *ROLES[1:]]


def in_one_call(host):
    by_agent = {name: [n for n, (agent, _) in ASKED.items() if agent == name] for name in NAMES}
    answers = host.answer(
        AnswerCall({name: [ASKED[n][1] for n in mine] for name, mine in by_agent.items()})
    )
    return {
        number: answer
        for name, mine in by_agent.items()
        for number, answer in zip(mine, answers[name], strict=True)
    }


def turns_until_whole(host, least):
    found = {}
    while len(found) < least:
        found |= host.write({}, 60.0)
    return found


def assert_same(answers, expected):
    assert answers.keys() == expected.keys()
    for number, answer in answers.items():
        mine, other = answer.generation, expected[number].generation
        assert list(mine.output_ids) == list(other.output_ids)
        assert list(mine.logprobs) == pytest.approx(list(other.logprobs), abs=1e-4)
        assert answer.program == expected[number].program


def test_a_row_that_joins_a_running_batch_equals_a_single_row(agents):
    host, found, largest = host_of(*agents), {}, 0
    for number, requested in ASKED.items():
        found |= host.write({number: requested}, 0.0)  # one step of all rows so far
        largest = max(largest, host.policies["solver"].generator.unfinished)
    assert 1 < largest < len(ASKED)
    found |= turns_until_whole(host, len(ASKED) - len(found))
    assert_same(found, in_one_call(host_of(*agents)))
    assert host.write({}, 60.0) == {}


def test_a_turn_ends_with_what_is_urgent(agents):
    host, expected = host_of(*agents), in_one_call(host_of(*agents))
    early = {number: requested for number, requested in ASKED.items() if number < 4}
    late = {number: requested for number, requested in ASKED.items() if number >= 4}
    answers_written = host.write(early, 0.0)
    for _ in range(2):
        answers_written |= host.write({}, 0.0)
    hurry = next(number for number in early if number not in answers_written)
    answers_written |= host.write(late, 60.0, urgent=[hurry, 999])  # the other will not be finished
    assert hurry in answers_written and len(answers_written) < len(ASKED)
    assert_same(
        answers_written | turns_until_whole(host, len(ASKED) - len(answers_written)), expected
    )


def test_an_answer_is_finished_by_the_weights_that_began_it(agents):
    host, expected = host_of(*agents), in_one_call(host_of(*agents))
    rows = rows_of(
        host_of(*agents).answer(AnswerCall({"solver": [Request(PROBLEM)] * 4})), [1, -1, 1, -1]
    )
    result = host.write(ASKED, 0.0)
    host.learn("solver", rows, 0.1)
    late = {100: ("solver", Request(PROBLEM, None, (8, 1)))}
    found = result | host.write(late, 60.0)
    found |= turns_until_whole(host, len(ASKED) + 1 - len(found))
    assert found.pop(100).generation.policy_version == 1
    assert_same(found, expected)
    assert {answer.generation.policy_version for answer in found.values()} == {0}


def test_a_generator_finishes_what_it_writes_before_it_takes_weights(agents):
    learner, run = host_of(*agents), run_of(*agents)
    generator = PolicyHost([run.agents], run, [0], generator_index=0)
    expected = in_one_call(learner)
    learner.learn("solver", rows_of({"all": list(expected.values())}, [1, -1] * 6), 0.1)
    result = generator.write(ASKED, 0.0)
    generator.take_weights("solver", learner.give_weights("solver"))
    outcome = result | turns_until_whole(generator, len(ASKED) - len(result))
    assert_same(outcome, expected)
    assert in_one_call(generator)[0].generation.policy_version == 1
