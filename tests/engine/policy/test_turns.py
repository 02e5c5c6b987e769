"""Tests that answers requested one by one equal those generated in one call."""

from dataclasses import replace

import msgspec
import pytest
import torch

from engine.policy.host import PolicyHost
from engine.policy.learner.rows import TrainingRow
from engine.policy.types import AnswerCall, Piece, Request
from engine.training.buffers import AgentBuffer
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


CARRIED = {"interrupt": True, "extra_trees": 1}


def assert_head_and_tail(host, answers, expected):
    """What was written before the update is that of the old weights, what follows that of the
    current ones at the whole context before it; returns the number of tokens of each head."""
    heads = {}
    for number, answer in answers.items():
        mine, other = answer.generation, expected[number].generation
        assert [piece.version for piece in mine.pieces] in ([], [0, 1])
        assert mine.policy_version == 0 or not mine.pieces
        head = mine.pieces[0].tokens if mine.pieces else len(mine.output_ids)
        heads[number] = head if mine.policy_version == 0 else 0
        head = heads[number]
        assert list(mine.output_ids[:head]) == list(other.output_ids[:head])
        assert list(mine.logprobs[:head]) == pytest.approx(list(other.logprobs[:head]), abs=1e-4)
        temperature = mine.temperature
        ids = torch.tensor([[*mine.prompt_ids, *mine.output_ids]])
        with torch.no_grad(), host.policies["solver"].weights.current() as model:
            logits = model(ids).logits[0, len(mine.prompt_ids) - 1 : -1] / temperature
        new = torch.log_softmax(logits, -1).gather(1, ids[0, len(mine.prompt_ids) :, None])[:, 0]
        assert list(mine.logprobs[head:]) == pytest.approx(new[head:].tolist(), abs=1e-4)
    return heads


def test_new_weights_carry_an_answer_on_and_every_token_keeps_its_own_log_probability(agents):
    host, expected = host_of(*agents, training=CARRIED), in_one_call(host_of(*agents))
    rows = rows_of(
        host_of(*agents).answer(AnswerCall({"solver": [Request(PROBLEM)] * 4})), [1, -1, 1, -1]
    )
    found = host.write(ASKED, 0.0)
    host.learn("solver", rows, 0.1)
    assert host.policies["solver"].generator.unfinished == 0
    late = {100: ("solver", Request(PROBLEM, None, (8, 1)))}
    found |= host.write(late, 0.0)
    found |= turns_until_whole(host, len(ASKED) + 1 - len(found))
    assert found.pop(100).generation.policy_version == 1
    heads = assert_head_and_tail(host, found, expected)
    assert sum(0 < heads[n] < len(found[n].generation.output_ids) for n in heads) > 3

    # The correction for stale tokens is each token's own: a head is off by one update, a tail is
    # not; the lag is the share of old tokens, and the oldest decides what is too old.
    pieces = [replace(row, pieces=one.generation.pieces, tree=1, node=number)
              for row, (number, one) in zip(rows_of({"": found.values()}, [1, -1] * 6),
                                            found.items(), strict=True)]  # fmt: skip
    learned = host.learn("solver", pieces, 0.2)
    shares = [heads[n] / len(found[n].generation.output_ids) for n in found]
    assert learned.lag == pytest.approx(sum(shares) / len(shares))
    ratios = {one.node: one.ratio for one in learned.tokens}
    assert all(abs(ratio - 1) < 2e-3 for n in heads for ratio in ratios[n][heads[n] :])
    assert sum(abs(ratio - 1) > 0.01 for n in heads for ratio in ratios[n][: heads[n]]) > 3


def test_a_row_in_pieces_is_as_stale_as_its_oldest_token():
    row = TrainingRow([1], [2] * 10, [0.0] * 10, 1.0, 3, pieces=(Piece(3, 4), Piece(5, 6)))
    assert (row.lag(5), replace(row, pieces=()).lag(5)) == (0.8, 2)
    buffer = AgentBuffer(1, max_staleness=2)
    buffer.version = 5
    buffer.add_tree([row])
    kept = AgentBuffer(1, max_staleness=2)
    kept.load_state(msgspec.json.decode(msgspec.json.encode(buffer.state())))
    assert kept.take() == [row]  # pieces are in the checkpoint
    buffer.version = 6
    assert buffer.take() == [] and buffer.record_update(7) == 1


def test_answers_rest_while_others_are_written_and_go_on_as_if_nothing_had_been(agents):
    host, expected = host_of(*agents, training=CARRIED), in_one_call(host_of(*agents))
    found = host.write(ASKED, 0.0)
    asked = AnswerCall({"solver": [Request(PROBLEM, name=(9, n)) for n in range(4)]}, stream=("a",))
    measured = host.answer(asked)
    assert_same(dict(enumerate(measured["solver"])),
                dict(enumerate(host_of(*agents).answer(asked)["solver"])))  # fmt: skip
    found |= host.write({}, 0.0)
    host.answer(asked)
    found |= turns_until_whole(host, len(ASKED) - len(found))
    assert_same(found, expected)
    assert not any(answer.generation.pieces for answer in found.values())


def test_a_generator_takes_weights_inside_an_answer(agents):
    learner, run = host_of(*agents), run_of(*agents, training=CARRIED)
    generator = PolicyHost([run.agents], run, [0], generator_index=0)
    expected = in_one_call(learner)
    learner.learn("solver", rows_of({"all": list(expected.values())}, [1, -1] * 6), 0.1)
    found = generator.write(ASKED, 0.0)
    generator.take_weights("solver", learner.give_weights("solver"))
    found |= turns_until_whole(generator, len(ASKED) - len(found))
    heads = assert_head_and_tail(learner, found, expected)
    assert any(0 < heads[n] < len(found[n].generation.output_ids) for n in heads)


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
