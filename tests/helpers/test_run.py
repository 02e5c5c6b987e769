"""`make test` on planted suites: flaky tests, failures, hangs and crashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.waiting import patience

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.conftest import (
    pytest_addoption, pytest_configure, pytest_sessionstart, pytest_xdist_make_scheduler,
)
"""
ONCE = """
from pathlib import Path
def is_first(name):
    marker = Path(name)
    return not marker.exists() and not marker.touch()
"""

WITHOUT = "-p no:django -p no:schemathesis -p no:hypothesispytest -p no:anyio"
"""Plugins that planted suites have no use for: each process would import them."""


@pytest.fixture
def suite(tmp_path):
    """Plants a suite, runs it as `make test` does, and returns the process that has ended."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "once.py").write_text(ONCE)
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "{WITHOUT}"\n'
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GROVE_PATIENCE": str(patience())}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]

    def run(*options: str, **files: str) -> subprocess.CompletedProcess:
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        command = [sys.executable, "-m", "tests.run", *options]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=120 * patience(),
        )  # fmt: skip

    run.folder = tmp_path
    return run


def test_what_fails_at_first_and_passes_alone_is_flaky_and_the_run_is_green(suite):
    ended = suite(
        assertion="import once\ndef test_at_first():\n    assert not once.is_first('a'), 'early'",
        crash="import once, os\ndef test_crash():\n    once.is_first('b') and os._exit(3)",
        fine="def test_fine(): pass",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 failed, 1 passed" in ended.stdout
    lines = map(json.loads, (suite.folder / "build/flaky.jsonl").read_text().splitlines())
    flaky = {line["test"]: line for line in lines}
    assert set(flaky) == {"test_assertion.py::test_at_first", "test_crash.py::test_crash"}
    for name, line in flaky.items():
        assert f"flaky: {name}: failed after" in ended.stdout
        assert line["second_seconds"] >= 0 and line["first_seconds"] >= 0
    assert "AssertionError: early" in flaky["test_assertion.py::test_at_first"]["traceback"]
    assert "crashed" in flaky["test_crash.py::test_crash"]["traceback"]


@pytest.mark.large
def test_what_fails_twice_and_what_hangs_are_named_and_the_run_goes_on(suite):
    hangs = "import threading\ndef test_hang():\n    threading.Event().wait()\n"
    # Blocked in C with signals off, where only the end of the process helps.
    deaf = (
        "import signal, threading\ndef test_deaf():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    threading.Event().wait()\n"
    )
    ended = suite(
        f"--test-seconds={2 / patience()}",
        twice="def test_twice():\n    assert 1 == 2",
        hang=hangs + "def test_after(): pass",
        deaf=deaf + "def test_after_too(): pass",
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "3 failed, 2 passed" in ended.stdout
    for name in ("twice.py::test_twice", "hang.py::test_hang", "deaf.py::test_deaf"):
        assert f"FAILED test_{name} (failed twice)" in ended.stdout
    assert "Timeout (>2.0s) from pytest-timeout" in ended.stdout
    assert "Timeout (0:00:03)!" in ended.stderr and "test_deaf" in ended.stderr
    assert not (suite.folder / "build/flaky.jsonl").read_text()


@pytest.mark.large
def test_a_run_with_many_flaky_tests_is_red(suite):
    at_first = "import once, pytest\n@pytest.mark.parametrize('one', range({count}))\n"
    at_first += "def test_at_first(one):\n    assert not once.is_first(f'{{one}}')\n"
    ended = suite(many=at_first.format(count=6))
    assert ended.returncode == 1, ended.stdout
    assert "6 tests are flaky; a run with more than 5 is red." in ended.stdout
