"""Test of traces that the real Trackio stores and exports."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers.extras import of_extra
from webapp.client.imports import rollouts

pytestmark = pytest.mark.large

PROGRAM = """
import trackio

trackio.init("oaks", name="r", embed=False, auto_log_gpu=False, auto_log_cpu=False)
chat = [{"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": [{"type": "text", "text": "4"}]}]
usage = {"id": "s", "name": "g", "kind": "generation", "usage": {"output_tokens": 7}}
traces = [trackio.Trace(chat, {"reward": 1.0, "agent": "oak"}, [usage]),
          trackio.Trace(chat[:2], {})]
trackio.log({"rollouts": traces, "loss": 0.5}, step=3)
trackio.finish()
"""


def test_what_trackio_exports_becomes_trees(tmp_path):
    of_extra("trackio", "peers")
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}
    options = {"env": environment, "cwd": tmp_path, "timeout": 120, "check": True}
    subprocess.run([sys.executable, "-c", PROGRAM], **options)
    command = "from trackio.cli import main; main()"
    words = ["list", "traces", "--project", "oaks", "--json"]
    listed = [sys.executable, "-c", command, *words]
    done = subprocess.run(listed, capture_output=True, **options)
    file = tmp_path / "traces.json"
    file.write_bytes(done.stdout)
    with file.open("rb") as lines:
        steps = rollouts.trees_of(rollouts.rows_of(lines, file.name))
    ((step, (tree,)),) = steps.items()
    assert (step, tree.problem) == (3, "2 + 2?")
    by_reward = sorted((n.reward or 0.0, n.text, n.agent, n.tokens) for n in tree.nodes)
    assert by_reward == [
        (0.0, "[add({})]", "policy", 0),
        (1.0, "[add({})]", "oak", 0),
        (1.0, "tool: 4\n\nassistant: 4", "oak", 7),
    ]
