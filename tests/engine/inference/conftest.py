"""Fixtures: real problems in a file, and one real endpoint for all tests of a module."""

import pytest

from engine.problems.generator import GeneratedProblems, Split
from engine.problems.jsonl import save_problems
from tests.engine.inference.server import ModelServer
from tests.helpers.waiting import eventually

PROBLEMS = GeneratedProblems(5).first(Split.TEST, 4)


@pytest.fixture(scope="module")
def problems():
    return PROBLEMS


@pytest.fixture
def files(tmp_path):
    """(a file with one problem, a file with all)."""
    one, many = tmp_path / "one.jsonl", tmp_path / "many.jsonl"
    save_problems(one, PROBLEMS[:1])
    save_problems(many, PROBLEMS)
    return one, many


@pytest.fixture(scope="module")
def module_server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(module_server, monkeypatch):
    """The module's endpoint, without the state of earlier tests."""
    eventually(module_server.is_idle, "the endpoint to answer what an earlier test gave up")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    module_server.failures.clear()
    module_server.prompts.clear()
    module_server.at_prompt.clear()
    module_server.key, module_server.context, module_server.most_at_once = "", 4096, 0
    return module_server
