"""Tests of a search in a run directory: its events fold to the tree that it searched."""

import os
import re
import signal
import threading
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children

import pytest

from engine.__main__ import main
from engine.config.deadlines import ACTORS_START
from engine.events.drafts import DraftReader
from engine.events.log import read_all
from engine.events.vocabulary import RunState
from engine.inference.agents import inference_config
from engine.inference.backends import AgentRequest, BackendError
from engine.inference.local_backends import LocalBackend
from engine.inference.run import prepare_search, search_run
from engine.policy.types import Request
from engine.run.exit_status import ExitCode
from tests.engine.inference.server import MODEL, endpoints
from tests.engine.inference.test_search import SHORT
from tests.helpers.policies import tiny_policy
from tests.helpers.waiting import patience
from tests.js.test_resumed import on_the_wire
from webapp.telemetry.fold import fold

pytestmark = pytest.mark.service

FLAT = {"search.nodes_in_flight": 3, "search.nodes_per_tree": 12}


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


def folded(run_dir):
    events = list(read_all(run_dir))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(event.typed() for event in events)
    return fold(map(on_the_wire, events))


def states(run_dir):
    return [e.payload["state"] for e in read_all(run_dir) if e.kind == "run.state"]


def test_its_events_fold_to_the_tree_that_was_searched(server, problems, run_dir):
    prepare_search(run_dir, endpoints(server, "oak", "fern", **FLAT), problems[0])
    code, problem, outcome = search_run(run_dir)
    assert (code, problem) == (ExitCode.FINISHED, problems[0])
    state = folded(run_dir)
    (tree,) = state.trees.values()
    assert tree["closed"] and tree["problem"] == problem.id
    assert len(tree["nodes"]) == 12 == len(outcome.tree.written)
    for number, node in tree["nodes"].items():
        written = outcome.tree.written[number]
        results = [
            node[name] for name in ("agent", "parent", "program", "verdict", "score", "draws")
        ]
        assert results == [
            written.agent, written.parent, written.answer.program, written.verification.verdict,
            written.score, written.draws,
        ]  # fmt: skip
        assert node["tokens"] == written.answer.generation.tokens > 0
        assert len(node["tests"]) == len(problem.public_tests)
    assert state.answer["node"] == outcome.answer.node
    assert state.answer["program"] == outcome.answer.answer.program
    assert state.answer["passed"] == outcome.answer.verification.public_passed
    assert state.answer["ended"] == "nodes" and "latest node" in state.answer["rule"]
    assert states(run_dir) == ["starting", "running", "finished"]
    # Content of private tests alone is in no prompt; the statement and public tests are.
    secret = {repr(test.arguments[0]) for test in problem.private_tests}
    secret -= {repr(test.arguments[0]) for test in problem.public_tests}
    requested = " ".join(message["content"] for prompt in server.prompts for message in prompt)
    assert secret and not any(re.search(re.escape(one), requested) for one in secret)


def test_sigterm_ends_it_in_order_with_the_best_so_far_and_it_can_begin_again(
    server, files, run_dir, capsys
):
    gate = threading.Event()

    def interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
        gate.wait(60 * patience())

    command = ["search", "--run-dir", str(run_dir), "--no-early-stop", "--nodes", "6"]
    named = ["--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    server.at_prompt[4] = interrupt
    assert main([*command, *named, "--in-flight", "1", "--set", *SHORT]) == ExitCode.STOPPED
    gate.set()
    server.at_prompt.clear()
    state = folded(run_dir)
    (tree,) = state.trees.values()
    assert [node["closed"] for node in tree["nodes"].values()] == [True, True, True, False]
    best = max(node["score"] for node in tree["nodes"].values() if node["closed"])
    assert tree["nodes"][state.answer["node"]]["score"] == best
    assert (state.run["state"], state.answer["ended"]) == (RunState.STOPPED, "stopped")
    assert "def solve" in capsys.readouterr().out
    assert main(["search", "--run-dir", str(run_dir), "--lease-seconds", "60"]) == 0
    state = folded(run_dir)
    (again,) = state.trees.values()
    assert again["id"] > tree["id"] and len(again["nodes"]) == 6 and again["closed"]
    assert (state.resumes, state.answer["ended"]) == (1, "nodes")
    assert states(run_dir) == ["starting", "running", "stopped", "starting", "running", "finished"]


def test_an_agent_that_fails_fails_the_run_with_its_name_and_keeps_the_answer(
    server, problems, run_dir
):
    settings = {**FLAT, "inference.retry_seconds": 0, "search.nodes_in_flight": 1}
    server.at_prompt[5] = lambda: server.fail(500, 50)
    prepare_search(run_dir, endpoints(server, "oak", **settings), problems[0])
    code, _, outcome = search_run(run_dir)
    state = folded(run_dir)
    assert code == ExitCode.FAILED and outcome.answer
    assert (state.error["phase"], state.error["agent"]) == ("search", "oak")
    assert "HTTP 500" in state.error["message"] and state.answer["ended"] == "failed"
    assert state.answer["node"] == outcome.answer.node and state.run["state"] == RunState.FAILED


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "config.json"),
        (["--problem", "x.jsonl"], "--agents missing"),
        (["--out", "tree.json"], "leave it out"),
    ],
)
def test_an_impossible_search_is_refused(arguments, reason, run_dir, capsys):
    run_dir.mkdir()
    assert main(["search", "--run-dir", str(run_dir), *arguments]) == ExitCode.REFUSED
    assert reason in capsys.readouterr().err
    assert list(run_dir.iterdir()) == []


def test_text_of_local_models_is_shown_while_it_grows(tmp_path, problems, run_dir):
    model = tiny_policy(tmp_path / "model", 1)
    short = {f"agents.{name}.sampling.max_new_tokens": 16 for name in ("oak", "fern")}
    config = inference_config([f"oak={model}", f"fern={model}"], FLAT | short)
    prepare_search(run_dir, config, problems[0])
    reader = DraftReader(run_dir)
    reader.watch()
    code, _, outcome = search_run(run_dir)
    assert code is ExitCode.FINISHED
    (tree,) = folded(run_dir).trees.values()
    drafts = reader.read()
    assert drafts and {draft.tree for draft in drafts} == {tree["id"]}
    for draft in drafts:
        node = outcome.tree.written[draft.node]
        assert draft.agent == node.agent and node.answer.text.startswith(draft.text)


def test_an_answer_does_not_wait_for_slower_ones(tmp_path, problems):
    model = tiny_policy(tmp_path / "model", 1)
    lengths = {
        "agents.oak.sampling.max_new_tokens": 4,
        "agents.fern.sampling.max_new_tokens": 1900,
        # Never the token that ends a text.
        "agents.fern.sampling.top_k": 1,
    }
    config = inference_config([f"oak={model}", f"fern={model}"], lengths)
    backend = LocalBackend(config.agents, config, 0, None)
    try:
        backend.ready(ACTORS_START)
        request = Request(problems[0])
        slow, fast = (
            backend.answer([AgentRequest(name, request)], None) for name in ("fern", "oak")
        )
        assert fast.result(60.0 * patience())[0].generation.tokens <= 4
        assert not slow.done()
        late = backend.answer([AgentRequest("oak", request)], 0.5)
        assert late.result(60.0 * patience())[0].generation.temperature == 0.5
        assert not slow.done()
        assert slow.result(60.0 * patience())[0].generation.tokens == 1900
    finally:
        backend.close()


def test_requests_in_flight_fail_with_their_process(tmp_path, problems):
    model = tiny_policy(tmp_path / "model", 1)
    config = inference_config([f"oak={model}"], {"agents.oak.sampling.max_new_tokens": 1900})
    before = set(active_children())
    backend = LocalBackend(config.agents, config, 0, None)
    (process,) = set(active_children()) - before
    backend.ready(ACTORS_START)
    futures = [backend.answer([AgentRequest("oak", Request(problems[0]))], None) for _ in range(3)]
    process.kill()
    for future in futures:
        assert isinstance(future.exception(60.0), BrokenProcessPool | BackendError)
    with pytest.raises(BackendError, match="the process of its model ended"):
        backend.answer([AgentRequest("oak", Request(problems[0]))], None)
    backend.close()
