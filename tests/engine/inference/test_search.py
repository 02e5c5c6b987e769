"""Tests of `python -m engine search`, with endpoints and with models in separate processes."""

import json
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import active_children

import psutil
import pytest

from engine.__main__ import main
from engine.inference.agents import inference_config, team_of
from engine.inference.local_team import LocalTeam
from engine.inference.search import search_problem
from engine.search.scheduler import TreeEnd
from tests.engine.inference.server import MODEL, endpoints
from tests.engine.search.growing import make_tree
from tests.helpers.large import large_but
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.waiting import eventually, patience

SHORT = ["agents.oak.sampling.max_new_tokens=32"]


def searched(config, problem):
    with LocalTeam(config) as team:
        team.ready()
        return search_problem(team, problem)


def choices(tree):
    return [(node.parent, node.agent, node.score) for node in tree.written.values()]


def test_one_in_flight_is_the_sequential_algorithm_draw_for_draw(server, problems):
    config = endpoints(server, "oak", "fern", **{"search.nodes_per_tree": 12})
    tree = searched(config, problems[0]).tree
    alone = make_tree(("oak", "fern"), seed=[config.seed, 0])
    for node in tree.written.values():
        expansion = alone.select()
        assert (expansion.parent, expansion.agent) == (node.parent, node.agent)
        assert expansion.draws == node.draws
        alone.close(alone.open(expansion), node.score)
    assert list(tree.written) == list(range(1, 13))
    assert server.most_at_once == 1


def test_several_in_flight_are_refilled_as_each_ends(server, problems):
    search = {"search.nodes_per_tree": 16, "search.nodes_in_flight": 4}
    opened, most = [], []

    class Watch:
        def opened(self, claim):
            opened.append(claim.node)
            most.append(claim.tree.search.in_flight)

        def closed(self, tree, node):
            left = 16 - len(opened)
            assert tree.search.in_flight == min(3, 16 - len(tree.written))
            assert left >= 0

    with LocalTeam(endpoints(server, "oak", "fern", **search)) as team:
        team.ready()
        outcome = search_problem(team, problems[0], sink=Watch())
    assert opened == list(range(1, 17)) and max(most) == 4
    assert outcome.end is TreeEnd.NODES
    assert 1 < server.most_at_once <= 4


def test_an_endpoint_receives_role_and_feedback_and_never_a_private_test(server, problems):
    search = {"search.nodes_per_tree": 16, "agents.oak.role": "You plant trees."}
    outcome = searched(endpoints(server, "oak", **search), problems[0])
    roots = [n for n in outcome.tree.written.values() if n.parent == 0]
    repairs = [n for n in outcome.tree.written.values() if n.parent]
    assert roots and repairs and len(server.prompts) == 16
    assert all(p[0] == {"role": "system", "content": "You plant trees."} for p in server.prompts)
    assert all("public tests" in node.answer.messages[-1]["content"] for node in repairs)
    assert not any("public tests" in node.answer.messages[-1]["content"] for node in roots)


def test_an_endpoint_receives_the_allowed_tokens(server, problems):
    flat = {"search.nodes_per_tree": 3, "search.max_depth": 1}

    def texts(**sampling):
        hot = {"temperature": 5.0, **sampling}
        options = {f"agents.oak.sampling.{name}": value for name, value in hot.items()}
        outcome = searched(endpoints(server, "oak", **flat, **options), problems[0])
        return {node.answer.text for node in outcome.tree.written.values()}

    # With only one token to draw from, every request gets the same answer.
    assert len(texts()) > 1
    assert texts(top_k=1) == texts(min_p=0.9999) and len(texts(top_k=1)) == 1


def test_a_prompt_that_is_too_long_for_the_server_loses_its_feedback(server, problems):
    server.context = 32 + 60
    outcome = searched(endpoints(server, "oak", **{"search.nodes_per_tree": 12}), problems[0])
    assert {n.parent for n in outcome.tree.written.values()} != {0}
    assert len(server.prompts) == 12
    server.context = 40
    outcome = searched(endpoints(server, "oak"), problems[0])
    assert "HTTP 400: the context length is only 40 tokens" in outcome.failure


def test_a_request_to_a_failing_endpoint_is_retried(server, problems):
    for status in (503, 429, 0, 599):
        server.fail(status, 1)
    gate = threading.Event()
    server.at_prompt[3] = lambda: gate.wait(60 * patience())
    settings = {"search.nodes_in_flight": 4, "inference.request_seconds": 1.0}
    config = endpoints(server, "oak", **settings)
    outcome = searched(config, problems[0])
    gate.set()
    assert len(outcome.tree.written) == 8 and not outcome.failure
    assert len(server.prompts) > 8, "the one that hung was queried again"


def test_an_endpoint_that_is_down_ends_the_search_and_what_was_written_is_kept(
    server, files, tmp_path, capsys
):
    out = tmp_path / "tree.json"
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    command += ["--nodes", "60", "--in-flight", "2", "--no-early-stop", "--out", str(out)]
    server.at_prompt[7] = lambda: server.fail(500, 50)
    assert main([*command, "--set", *SHORT, "inference.retry_seconds=0"]) == 1
    said, tree = capsys.readouterr(), json.loads(out.read_text())
    assert "the search failed: agent oak" in said.err and "HTTP 500: try again" in said.err
    assert "inference.retry_seconds" in tree["failure"] and tree["ended"] == "failed"
    # Two were in flight at any time; no request after the seventh got an answer, and the third in a
    # row that was given up ended the search. The sixth's answer may come after the first of them,
    # from which the row then begins anew.
    given_up = [node for node in tree["nodes"] if not node["text"]]
    assert 5 <= len(tree["nodes"]) - len(given_up) <= 7 and len(given_up) in {2, 3}
    assert 1 <= len(tree["unfinished"]) <= 2
    written = [node["node"] for node in tree["nodes"] + tree["unfinished"]]
    assert sorted(written) == list(range(1, len(written) + 1))
    assert tree["answer"]["program"].strip() == said.out.strip()


def test_a_search_is_a_function_of_its_seed_with_many_in_flight(server, problems):
    search = {"search.nodes_per_tree": 24, "search.nodes_in_flight": 6}
    search |= {"compute.deterministic": True}

    def tree(seed):
        settings = {**search, "seed": seed}
        config = endpoints(server, "oak", "fern", **settings)
        written = searched(config, problems[0]).tree.written.values()
        return [(n.node, n.parent, n.agent, n.answer.text, n.draws) for n in written]

    assert tree(1) == tree(1) != tree(2)
    assert server.most_at_once > 1


def test_a_key_comes_from_the_environment(server, files, monkeypatch, capsys):
    server.key = "acorn"
    command = [
        "search",
        "--problem",
        str(files[0]),
        "--nodes",
        "1",
        "--agents",
        f"oak={server.url}",
    ]
    assert main(command) == 2
    assert "HTTP 401: no such key; set OPENAI_API_KEY" in capsys.readouterr().err
    monkeypatch.setenv("OPENAI_API_KEY", "acorn")
    assert main([*command, "--set", *SHORT]) in (0, 1)


def test_the_command_prints_the_answer_and_writes_the_tree(server, files, tmp_path, capsys):
    out = tmp_path / "deep" / "tree.json"
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    command += ["--nodes", "12", "--in-flight", "3", "--no-early-stop", "--out", str(out)]
    code = main([*command, "--json", "--set", *SHORT])
    data, tree = json.loads(capsys.readouterr().out), json.loads(out.read_text())
    assert code == (0 if data["solved"] else 1)
    assert [node["node"] for node in tree["nodes"]] == list(range(1, 13))
    best = max(node["public"] for node in tree["nodes"])
    latest = max(node["node"] for node in tree["nodes"] if node["public"] == best)
    assert data["answer"]["node"] == tree["answer"]["node"] == latest
    assert data["tokens"] == sum(node["tokens"] for node in tree["nodes"]) > 0
    for node in tree["nodes"]:
        assert node["messages"] and node["draws"]["levels"] and node["tests"]
        passed = sum(test["verdict"] == "passed" for test in node["tests"])
        assert node["public"] == passed / len(node["tests"])
    assert main([*command, "--set", *SHORT]) in (0, 1)
    assert "def solve" in capsys.readouterr().out


def test_the_search_ends_when_a_node_passes_all_public_tests(server, problems):
    search = {"search.nodes_per_tree": 60, "search.stop_when_solved": True}
    outcome = searched(endpoints(server, "oak", **search), problems[0])
    assert outcome.end is TreeEnd.SOLVED and outcome.solved
    assert outcome.answer.node == len(outcome.tree.written) < 60


@pytest.mark.parametrize(
    ("budget", "end"), [(["--tokens", "40"], "tokens"), (["--seconds", "0.5"], "seconds")]
)
def test_tokens_or_seconds_end_the_search_too(budget, end, server, files, capsys):
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    assert main([*command, *budget, "--no-early-stop", "--json", "--set", *SHORT]) in (0, 1)
    data = json.loads(capsys.readouterr().out)
    assert data["ended"] == end and data["nodes_written"] == len(server.prompts) >= 1
    assert end == "seconds" or data["tokens"] >= 40


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--agents", "starter:birch"], "no such starter"),
        (["--agents", "/nowhere/at-all"], "is not a directory"),
        (["--agents", "http://127.0.0.1:9/v1#x"], "cannot be reached"),
        (["--agents", "a=starter:oak", "a=starter:fern"], "names must differ"),
        (["--agents", "starter:oak", "--set", "search.roh=1"], "unknown setting"),
        (["--agents", "starter:oak", "--set", "search.rho=2"], "search.rho"),
        (["--agents", "starter:oak", "--id", "none"], "holds no such problem"),
        (["--agents", "starter:oak", "--out", "/dev/null/x"], "/dev/null"),
    ],
)
def test_bad_input_is_refused_with_its_reason(arguments, reason, files, capsys):
    assert main(["search", "--problem", str(files[0]), *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_a_problem_file_must_exist_and_name_one_problem(files, tmp_path, capsys):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    for file, reason in [
        (tmp_path / "none.jsonl", "No such file"),
        (empty, "holds no problem"),
        (files[1], "holds 4 problems; choose one with --id"),
    ]:
        assert main(["search", "--problem", str(file), "--agents", "starter:oak"]) == 2
        assert reason in capsys.readouterr().err


def test_a_run_gives_all_its_agents_with_their_roles(tmp_path):
    run = tmp_path / "run"
    config = tiny_config(tiny_policy(tmp_path / "start", 1))
    agent = config.agents[0].model_copy(update={"role": "You prune."})
    for folder in ("models", "checkpoints/step-000002"):
        tiny_policy(run / folder / agent.name, 2)
    (run / "checkpoints/step-000002/state.json").write_text("{}")
    (run / "config.json").write_text(
        config.model_copy(update={"agents": (agent,)}).model_dump_json()
    )
    (final,) = team_of([str(run)])
    assert final["model"] == str(run / "models" / agent.name)
    (saved,) = team_of([str(run / "checkpoints" / "step-000002")])
    assert saved["model"].endswith("step-000002/agent-0")
    (named,) = team_of([f"oak={run}/models/agent-0"])
    assert named == final | {"name": "oak"}
    assert final["role"] == "You prune." and final["sampling"]["max_new_tokens"] == 8
    names = [a["name"] for a in team_of([str(run), str(run), "http://h/v1#Qwen/Qwen3-8B"])]
    assert names == ["agent-0", "agent-0-2", "qwen3-8b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_search_that_is_interrupted_answers_from_what_is_there(
    number, server, files, tmp_path, capsys
):
    """Ctrl-C finishes the open nodes; SIGTERM waits for none, not even for one that hangs."""
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    out, gate = tmp_path / "tree.json", threading.Event()
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    command += ["--nodes", "4000", "--in-flight", "2", "--no-early-stop", "--out", str(out)]

    def interrupt():
        os.kill(os.getpid(), number)
        if number == signal.SIGTERM:
            gate.wait(60 * patience())

    server.at_prompt[6] = interrupt
    assert main([*command, "--json", "--set", *SHORT]) == 3
    gate.set()
    data, tree = json.loads(capsys.readouterr().out), json.loads(out.read_text())
    assert data["answer"] and 4 <= len(tree["nodes"]) == data["nodes_written"] < 20
    if number == signal.SIGINT:
        assert (data["ended"], data["failure"]) == ("stopped", None)
        assert len(tree["nodes"]) == len(server.prompts) and not tree["unfinished"]
    else:
        assert (data["ended"], data["failure"]) == ("failed", "interrupted")
        assert 1 <= len(tree["unfinished"]) <= 2
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.large
@pytest.mark.slow
def test_agents_of_one_model_share_a_process_and_its_death_loses_no_node(tmp_path, problems):
    """Two roles of one model, six in flight: one copy, one tree per seed, and all token records."""
    model = tiny_policy(tmp_path / "model", 1)
    search = {"search.nodes_per_tree": 24, "search.nodes_in_flight": 6}
    sampling = {f"agents.{n}.sampling.max_new_tokens": 8 for n in ("oak", "fern")}
    settings = {**search, **sampling, "agents.fern.role": "You prune."}
    settings |= {"compute.deterministic": True}
    config = inference_config(
        [f"oak={model}", f"fern={tmp_path}/../{tmp_path.name}/model"], settings
    )
    before = set(active_children())

    def tree(outcome):
        return [(n.parent, n.agent, n.answer.text) for n in outcome.tree.written.values()]

    with LocalTeam(config) as team:
        (process,) = set(active_children()) - before
        team.ready()
        first, second = (search_problem(team, problems[0]) for _ in range(2))
        assert tree(first) == tree(second) and len(tree(first)) == 24
        assert {agent for _, agent, _ in tree(first)} == {"oak", "fern"}

        class Killing:
            def opened(self, claim):
                pass

            def closed(self, tree, node):
                if node.node == 9:
                    process.kill()

        broken = search_problem(team, problems[0], sink=Killing())
    assert ": the process of its model ended" in broken.failure
    assert tree(broken) == tree(first)[: len(tree(broken))] and 9 <= len(tree(broken)) < 24
    assert not set(active_children()) - before


@pytest.mark.slow
@pytest.mark.parametrize("gpus, forked", large_but([("", True)], [("", True), ("81920\n", False)]))
def test_a_model_is_forked_only_where_none_may_lie_on_a_gpu(tmp_path, monkeypatch, gpus, forked):
    """The GPU driver does not survive a fork. Without one here, the test's tool lists one."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nprintf '{gpus}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    config = inference_config([f"oak={tiny_policy(tmp_path / 'model', 1)}"], {})
    before = set(active_children())
    with LocalTeam(config) as team:
        (process,) = set(active_children()) - before
        assert (psutil.Process(process.pid).ppid() != os.getpid()) is forked
        team.ready()


DRIVER = """
import json, os, signal, sys
from multiprocessing import active_children
from engine.__main__ import main
from engine.config.deadlines import ACTORS_START
from engine.inference.backends import ModelProcess

code = main(sys.argv[1:])
paid = sorted({"torch", "ray"} & set(sys.modules))
left = ModelProcess("one more", dict)
left.ready(ACTORS_START)
(process,) = active_children()
print(json.dumps([code, paid, process.pid]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.large
@pytest.mark.slow
def test_models_of_this_machine_live_in_processes_of_their_own(files, tmp_path):
    """The whole command, as a user starts it: the driver never imports torch, and if it is killed
    no model process outlives it."""
    out = tmp_path / "tree.json"
    command = [sys.executable, "-c", DRIVER, "search", "--problem", str(files[0]), "--json"]
    command += ["--agents", "starter:oak", "starter:fern", "--nodes", "8", "--out", str(out)]
    done = subprocess.run(
        [*command, "--no-early-stop"], capture_output=True, timeout=300 * patience()
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    *lines, last = done.stdout.decode().splitlines()
    code, paid, process = json.loads(last)
    assert code in (0, 1) and not paid, done.stderr
    eventually(lambda: not is_alive(process), "the process of a model to end with its driver")
    data, tree = json.loads("".join(lines)), json.loads(out.read_text())
    assert data["nodes_written"] == 8 and sum(data["nodes_by_agent"].values()) == 8
    for node in tree["nodes"]:
        assert node["prompt_ids"] and len(node["output_ids"]) == node["tokens"]
        assert len(node["logprobs"]) == node["tokens"]


def is_alive(number):
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
