"""Tests of the early start of the process from which a search's models are forked."""

import json
import subprocess
import sys

import pytest

from tests.helpers.waiting import patience

SCRIPT = """
import json, sys
from multiprocessing import forkserver
from engine.inference.agents import inference_config
from engine.inference.model_forks import prepare_forks
heavy = [name for name in ("torch", "transformers", "ray") if name in sys.modules]
config = inference_config([sys.argv[1]], {"compute.device": "cpu", **json.loads(sys.argv[2])})
prepare_forks(config)
print(json.dumps([heavy, forkserver._forkserver._forkserver_pid is not None]))
"""


@pytest.mark.large
@pytest.mark.parametrize(
    ("model", "settings", "starts"),
    [
        ("starter:oak", {}, True),
        ("starter:oak", {"compute.deterministic": True}, False),
        ("http://127.0.0.1:9/v1#far", {}, False),
    ],
)
def test_a_fork_server_is_started_only_for_models_that_are_forked(model, settings, starts):
    command = [sys.executable, "-c", SCRIPT, model, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 * patience())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[], starts]
