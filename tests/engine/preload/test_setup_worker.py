"""Tests of the worker setup that Ray runs: Grove's sets the environment, Ray's does the rest."""

import json
import os
import subprocess
import sys

import pytest

from engine.preload.environment import SETUP_WORKER
from tests.helpers.waiting import patience

TELLS = """
import json, os, sys
print(json.dumps({"program": sys.argv[0], "given": sys.argv[1:], "here": os.environ.get("HERE")}))
"""


@pytest.fixture
def folder(tmp_path):
    """A worker and Ray's own setup program; both print the arguments and variables they got."""
    for name in ("default_worker.py", SETUP_WORKER.name):
        (tmp_path / name).write_text(TELLS)
    return tmp_path


def started(folder, context, *, language="PYTHON"):
    worker = [str(folder / "default_worker.py"), "--node-ip-address=::1"]
    results = [f"--language={language}", f"--serialized-runtime-env-context={json.dumps(context)}"]
    command = [sys.executable, str(SETUP_WORKER), *worker, *results]
    environment = os.environ | {"ROOT": "/oak"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60 * patience()
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_worker_has_its_variables_and_its_interpreter(folder):
    context = {
        "command_prefix": [],
        "env_vars": {"HERE": "${ROOT}/fern${NOWHERE}"},
        "py_executable": f"{sys.executable} -I -S",
        "override_worker_entrypoint": None,
        "java_jars": [],
    }
    result = started(folder, context)
    assert result["program"] == str(folder / "default_worker.py")
    assert result["given"] == ["--node-ip-address=::1"] and result["here"] == "/oak/fern"


@pytest.mark.parametrize(
    ("context", "language"),
    [
        ({"py_executable": sys.executable, "command_prefix": ["env"]}, "PYTHON"),
        ({"py_executable": sys.executable, "something_new": {"a": 1}}, "PYTHON"),
        ({"py_executable": sys.executable}, "JAVA"),
        ({}, "PYTHON"),
    ],
)
def test_unsupported_workers_are_left_to_ray(folder, context, language):
    result = started(folder, context, language=language)
    assert result["program"] == str(folder / SETUP_WORKER.name)
    assert result["given"][0] == str(folder / "default_worker.py") and len(result["given"]) == 4
    assert json.loads(result["given"][-1].split("=", 1)[1]) == context
