"""Tests of `search` and `evaluate` against the OpenAI-compatible server of vLLM, on this CPU."""

import json
import os
import signal
import subprocess
import sys
from functools import cache

import httpx
import pytest

from engine.__main__ import main
from engine.events.vocabulary import StopReason
from engine.inference.agents import inference_config
from engine.inference.backends import BackendError
from engine.inference.local_team import LocalTeam
from engine.inference.search import search_problem
from engine.policy.models.load import load_policy, model_directory
from tests.helpers.extras import needs_vllm
from tests.helpers.ports import a_port
from tests.helpers.waiting import eventually

pytestmark = [pytest.mark.large, pytest.mark.slow, needs_vllm]

MODEL = "trees/oak"
CONTEXT = 48
"""Tokens that the server accepts: fewer than some repairs need with their feedback."""
ANSWER = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(address, file of its log)"""
    port = a_port()
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(model_directory("starter:oak")), "--served-model-name", MODEL,
        "--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(CONTEXT),
        "--dtype", "float32", "--enforce-eager", "--distributed-executor-backend", "uni",
        "--kv-cache-memory-bytes", str(64 << 20),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TORCH_COMPILE_DISABLE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    path = tmp_path_factory.mktemp("server") / "server.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        base = f"http://127.0.0.1:{port}"
        # One client for all requests: each new one would read all certificates, twenty times a
        # second.
        asking = httpx.Client(base_url=base, trust_env=False)

        def ready():
            assert process.poll() is None, path.read_text()[-3000:]
            try:
                return asking.get("/health").is_success
            except httpx.TransportError:
                return False

        try:
            with asking:
                eventually(ready, "the server of vLLM", 300)
            yield f"{base}/v1", path
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def url(server):
    return server[0]


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def searched(url, problem, **more):
    with LocalTeam(inference_config([f"oak={url}#{MODEL}"], settings(**more))) as team:
        team.ready()
        return search_problem(team, problem)


def settings(**more):
    short = {"agents.oak.sampling.max_new_tokens": ANSWER, "search.nodes_per_tree": 8}
    return short | more


@cache
def tokenizer():
    return load_policy("starter:oak").tokenizer


def prompt_tokens(node):
    """Counted with Grove's own tokenizer and chat template."""
    messages = list(node.answer.messages)
    return len(
        tokenizer().apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    )


def test_a_tree_is_searched_with_it_and_its_tokens_are_counted_as_ours_are(url, problems):
    tree = searched(url, problems[0], **{"search.nodes_in_flight": 4}).tree
    assert len(tree.written) == 8
    for node in tree.written.values():
        written = node.answer.generation
        limit = min(ANSWER, CONTEXT - prompt_tokens(node))
        assert 0 < written.tokens <= limit and written.output_ids == written.logprobs == []
        if written.stop is StopReason.MAX_TOKENS:
            assert written.tokens == limit
        if node.answer.program:
            assert node.answer.program in node.answer.text


def test_its_own_sampling_fields_are_understood(url, problems):
    def texts(**sampling):
        hot = {"temperature": 2.0, **sampling}
        options = {f"agents.oak.sampling.{name}": value for name, value in hot.items()}
        flat = {"search.max_depth": 1, "search.nodes_per_tree": 4}
        outcome = searched(url, problems[0], **flat, **options)
        assert len(outcome.tree.written) == 4, outcome.failure
        return {node.answer.text for node in outcome.tree.written.values()}

    assert len(texts()) > 1
    assert texts(top_k=1) == texts(min_p=0.9999) and len(texts(top_k=1)) == 1


def test_a_prompt_beyond_its_context_loses_feedback_and_then_is_refused_in_its_words(
    server, problems
):
    url, log = server
    deep = {"search.nodes_per_tree": 24, "search.nodes_in_flight": 4}
    outcome = searched(url, problems[0], **deep)
    assert len(outcome.tree.written) == 24, outcome.failure
    repairs = [node for node in outcome.tree.written.values() if node.parent]
    assert repairs
    assert max(map(prompt_tokens, repairs)) < CONTEXT
    assert "400 Bad Request" in log.read_text()
    outcome = searched(url, problems[0], **{"agents.oak.role": "You plant trees. " * 20})
    assert not any(node.answer.text for node in outcome.tree.written.values())
    assert "HTTP 400: " in outcome.failure and str(CONTEXT) in outcome.failure


def test_a_team_of_it_and_a_model_here_is_evaluated_by_the_command(url, files, capsys):
    command = [
        "evaluate", "--agents", f"oak={url}", "fern=starter:fern", "--dataset", str(files[1]),
        "--samples", "2", "--nodes", "4", "--json", "-",
        "--set", f"agents.oak.sampling.max_new_tokens={ANSWER}",
    ]  # fmt: skip
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    figures = result["figures"]
    assert figures["pass@1/oak"]["tokens"] > 0 < figures["pass@1/fern"]["tokens"]
    assert 0 <= figures["tree/pass@1"]["value"] <= 1
    assert figures["tree/pass@1"]["nodes"] == 4 * 4


def test_a_model_that_it_does_not_have_is_named_with_those_that_it_has(url):
    team = LocalTeam(inference_config([f"oak={url}#trees/birch"], settings()))
    with team, pytest.raises(BackendError, match=f"has the models {MODEL}; name one"):
        team.ready()
