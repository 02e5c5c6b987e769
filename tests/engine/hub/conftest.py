"""Fixtures: a local hub, and the engine as a process that uses it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.policy.starters import starter_directory
from tests.helpers.hub_server import Hub, a_hub, folder_contents
from tests.helpers.waiting import patience

# One process for many commands: each import of the client takes as long as a command.
_COMMANDS = """
import contextlib, io, json, os, sys
from engine.__main__ import main
for variables, words in json.load(sys.stdin):
    os.environ |= variables
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


@pytest.fixture
def hub():
    with a_hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def oak() -> dict[str, bytes]:
    """Files of a model that loads."""
    return folder_contents(starter_directory("oak"))


@dataclass
class Engine:
    hub: Hub
    home: Path
    """The client's HF_HOME."""

    def run(self, *commands, token="", **variables):
        """(exit status, stdout, stderr) of each command, in one process."""
        steps = [one if isinstance(one, tuple) else ({}, one) for one in commands]
        done = self.python(_COMMANDS, input=json.dumps(steps), token=token, **variables)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def python(self, code, *words, input="", token="", **variables):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "GROVE_HUB"))}
        return subprocess.run(
            [sys.executable, "-c", code, *words],
            env={**clean, **self.hub.environment(self.home, token), **variables},
            input=input, capture_output=True, text=True, timeout=120 * patience(),
        )  # fmt: skip


@pytest.fixture
def engine(hub, tmp_path) -> Engine:
    return Engine(hub, tmp_path / "home")
