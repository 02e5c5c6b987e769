"""Tests of drafts: what is being written is shown as it grows, and changes nothing."""

import time
from dataclasses import replace

import pytest

from engine.events import drafts as files
from engine.events.drafts import Draft, DraftReader, DraftWriter
from engine.policy.host import PolicyHost
from engine.policy.types import AnswerCall, Request
from engine.problems.generator import GeneratedProblems, Split
from tests.helpers.policies import tiny_config, tiny_policy

PROBLEM = GeneratedProblems(3).first(Split.TRAIN, 1)[0]
TREE = 9
STEP_SECONDS = 0.05
"""The pace of a large model: the tiny one has written everything before a second draft is due."""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    run = tiny_config(tiny_policy(tmp_path_factory.mktemp("model")))
    (agent,) = run.agents
    sampling = agent.sampling.model_copy(update={"max_new_tokens": 60})
    return run.model_copy(update={"agents": [agent.model_copy(update={"sampling": sampling})]})


def host(config, run_dir):
    return PolicyHost([config.agents], config, [0], run_dir=run_dir)


def requests(number):
    """Requests of so many nodes of one tree, which begin at node 1."""
    return [Request(PROBLEM, None, (5, n), (TREE, n)) for n in range(1, number + 1)]


def pulled(host, requests, step_seconds=0.0):
    """The answers, by node, generated one step at a time; and what was shown at each step."""
    reader = DraftReader(host.run_dir)
    by_number = {one.node[1]: ("agent-0", one) for one in requests}
    answers = host.write(by_number, 0.0)
    shown = [reader.read()]
    while len(answers) < len(requests):
        time.sleep(step_seconds)
        answers |= host.write({}, 0.0)
        shown.append(reader.read())
    return answers, shown


def test_a_draft_is_the_beginning_of_its_answer(config, tmp_path):
    DraftReader(tmp_path).watch()
    answers, shown = pulled(host(config, tmp_path), requests(3), STEP_SECONDS)
    assert shown[0] is not None and sum(drafts is not None for drafts in shown) > 2
    tokens = {1: 0, 2: 0, 3: 0}
    for draft in (draft for drafts in shown for draft in drafts or ()):
        assert (draft.tree, draft.agent) == (TREE, "agent-0")
        assert answers[draft.node].text.startswith(draft.text)
        assert tokens[draft.node] <= draft.tokens <= answers[draft.node].generation.tokens
        tokens[draft.node] = draft.tokens
    assert all(tokens.values())


@pytest.mark.parametrize("way", ["answer", "write"])
def test_answers_are_the_same_with_and_without_a_watcher(config, tmp_path, way):
    def written(run_dir):
        own = host(config, run_dir)
        if way == "write":
            return pulled(own, requests(4))[0] if run_dir else all_of(own)
        return dict(enumerate(own.answer(AnswerCall({"agent-0": requests(4)}))["agent-0"], 1))

    def all_of(own):
        answers = own.write({one.node[1]: ("agent-0", one) for one in requests(4)}, 60.0)
        while len(answers) < 4:
            answers |= own.write({}, 60.0)
        return answers

    DraftReader(tmp_path).watch()
    before = {n: replace(a.generation, seconds=0.0) for n, a in written(None).items()}
    after = {n: replace(a.generation, seconds=0.0) for n, a in written(tmp_path).items()}
    assert before == after
    assert DraftReader(tmp_path).read()


def test_nothing_is_written_while_nobody_watches(config, tmp_path):
    own = host(config, tmp_path)
    own.answer(AnswerCall({"agent-0": requests(2)}))
    assert not (tmp_path / files.FOLDER).exists()
    reader = DraftReader(tmp_path)
    reader.watch()
    reader.clear()
    own.answer(AnswerCall({"agent-0": requests(2)}))
    assert reader.read() is None


def test_an_answer_that_is_no_node_of_the_log_has_no_draft(config, tmp_path):
    reader = DraftReader(tmp_path)
    reader.watch()
    own = host(config, tmp_path)
    own.answer(AnswerCall({"agent-0": [replace(one, node=None) for one in requests(2)]}))
    assert reader.read() is None


def test_of_many_nodes_those_that_began_last_are_shown(config, tmp_path):
    reader = DraftReader(tmp_path)
    reader.watch()
    host(config, tmp_path).write(
        {one.node[1]: ("agent-0", one) for one in requests(files.MOST + 4)}, 0.0
    )
    shown = [draft.node for draft in reader.read()]
    assert shown == list(range(5, files.MOST + 5))


def test_the_drafts_of_all_processes_are_read_once_each_time_they_change(tmp_path):
    reader = DraftReader(tmp_path)
    reader.watch()
    writers = [DraftWriter(tmp_path, name) for name in ("oak", "fern-0")]
    assert all(writer.is_due() for writer in writers)
    assert not any(writer.is_due() for writer in writers), "not again within half a second"
    writers[0].write([Draft(9, 2, "oak", 3, "b")])
    writers[1].write([Draft(9, 1, "fern", 3, "a")])
    assert [draft.text for draft in reader.read()] == ["a", "b"]
    assert reader.read() is None
    (tmp_path / files.FOLDER / "oak.json").write_bytes(b"[{")
    assert [draft.text for draft in reader.read()] == ["a"]
    reader.clear()
    assert not list((tmp_path / files.FOLDER).iterdir())


def test_a_draft_that_cannot_be_written_costs_nothing_else(config, tmp_path):
    reader = DraftReader(tmp_path)
    reader.watch()
    (tmp_path / files.FOLDER / "agent-0.part").mkdir()
    answers = host(config, tmp_path).answer(AnswerCall({"agent-0": requests(2)}))["agent-0"]
    assert len(answers) == 2 and reader.read() is None
