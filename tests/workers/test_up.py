"""Tests of `manage.py up` as a process: one command up, one Ctrl-C down, nothing left behind."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from engine.events.log import read_all
from tests.e2e.stack import ROOT, Stack
from tests.helpers.database import a_migrated_postgres
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import small_engine, steps_counted
from workers.processes import wait_ended

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="grove-up-") as directory:
        yield Path(directory)


def stack_on(var, **engine):
    return Stack(var, {"GROVE_ENGINE_COMMAND": shlex.join(small_engine(**engine))})


def run_directory(var):
    return eventually(lambda: next((var / "runs").glob("*"), None), "a run")


def steps_written(var):
    return [e.payload["step"] for e in read_all(run_directory(var)) if e.kind == "step.end"]


def up_again(stack, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "up"],
        env={**stack.environment, **environment},
        capture_output=True, text=True, timeout=180 * patience(),
    )  # fmt: skip


@dataclass
class Ended:
    """What the first `up` in a directory did until Ctrl-C, which came within a step of its run."""

    var: Path
    page: httpx.Response
    again: httpx.Response
    """Of the same link."""
    left: list[psutil.Process]
    said: str


@pytest.fixture(scope="module")
def interrupted(folder):
    var = folder / "var"
    with stack_on(var, steps=4, hold_at=3) as stack:
        with httpx.Client(follow_redirects=True) as browser:
            page = browser.get(stack.sign_in_link())
        again = httpx.get(stack.sign_in_link())
        eventually(lambda: len(steps_written(var)) >= 2, "two steps")
        left = stack.stop()
        return Ended(var, page, again, left, stack.said())


@pytest.mark.large
def test_up_serves_a_page_signs_in_once_and_leaves_nothing_on_ctrl_c(interrupted):
    assert interrupted.page.status_code == 200 and "/runs/" in str(interrupted.page.url)
    assert interrupted.again.status_code == 410
    assert interrupted.left == []
    assert "Stopping" in interrupted.said


@pytest.mark.large
def test_the_next_up_goes_on_with_the_interrupted_run(interrupted):
    var = interrupted.var
    before = max(steps_written(var))
    with stack_on(var, steps=before + 20, pause=0.05) as stack:
        eventually(lambda: max(steps_written(var)) == before + 20, "the run's last step")
        assert len(list((var / "runs").glob("*"))) == 1
        assert "Launching" not in stack.said()
        assert stack.stop() == []
    assert steps_counted(run_directory(var)) == list(range(1, before + 21))


@pytest.mark.large
def test_up_starts_the_demo_with_the_real_engine_and_leaves_nothing(request, tmp_path):
    """As by `make run`; only the folder and the port are the test's own."""
    var = tmp_path / "var"
    a_migrated_postgres(var / "postgres", request.config.cache.mkdir("databases"))
    with Stack(var) as stack:
        eventually(lambda: steps_written(var), "a step", 600)
        stack.find("preload")
        with httpx.Client(follow_redirects=True) as browser:
            assert "/runs/" in str(browser.get(stack.sign_in_link()).url)
            run = browser.get(f"{stack.address}/api/v1/runs").json()["runs"][0]
        assert (run["state"], run["id"]) == ("running", run_directory(var).name)
        assert stack.stop() == [], stack.said()
    log = list(read_all(run_directory(var)))
    updated = {event.payload["agent"] for event in log if event.kind == "agent.update"}
    assert updated == {"ash", "rowan"}
    states = [event.payload["state"] for event in log if event.kind == "run.state"]
    assert states == ["starting", "running", "stopped"]
    # The next `up` resumes from this state.
    (saved,) = (e.payload["path"] for e in log[-3:] if e.kind == "checkpoint.saved")
    assert (run_directory(var) / saved).is_dir()
    assert "Traceback" not in (run_directory(var) / "engine.log").read_text() + stack.said()


@pytest.fixture(scope="module")
def shared(folder, request):
    var = folder / "running"
    a_migrated_postgres(var / "postgres", request.config.cache.mkdir("databases"))
    with stack_on(var) as stack:
        yield stack


@pytest.fixture
def running(shared):
    """One stack for the tests that only inspect or kill it."""
    if shared.process is None or shared.process.poll() is not None:
        shared.start()
    return shared


@pytest.mark.large
def test_a_second_up_gets_the_address_of_the_first(running):
    second = up_again(running)
    assert second.returncode == 1
    assert f"already running on {running.var}, at {running.address}" in second.stdout
    # The files that the first stack's services need to restart still exist.
    assert (running.var / "postgres.url").exists()
    assert "Traceback" not in second.stdout + second.stderr


@pytest.mark.large
def test_a_busy_port_gets_a_sentence_and_a_remedy(running, tmp_path):
    busy = up_again(running, GROVE_VAR=str(tmp_path / "other"), GROVE_PORT=str(running.port))
    assert busy.returncode == 1
    assert f"Port {running.port} is in use" in busy.stdout and "GROVE_PORT=" in busy.stdout


@pytest.mark.large
def test_a_new_link_is_to_the_free_port_that_was_taken(running):
    assert running.environment["GROVE_PORT"] == "0"
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "sign_in_link"],
        env=running.environment, capture_output=True, text=True, timeout=60 * patience(),
    )  # fmt: skip
    assert done.stdout.startswith(f"{running.address}/sign-in/"), done.stdout + done.stderr
    assert httpx.get(done.stdout.strip()).status_code == 302


@pytest.mark.large
def test_a_killed_web_and_worker_come_back(running):
    for word, name in (("serve_web", "web"), ("celery", "worker")):
        old = running.find(word)
        old.kill()
        assert wait_ended([old], 10 * patience()) == []
        new = eventually(lambda word=word: _found(running, word), f"a new {name}")
        assert new.pid != old.pid
        assert f"The {name} ended" in running.said()
    eventually(lambda: _answers(running), "the site to answer", 400)


@pytest.mark.large
def test_nothing_outlives_a_supervisor_that_is_killed(running):
    everything = running.processes()
    assert "postgres" in {process.name() for process in everything}
    running.process.send_signal(signal.SIGKILL)
    assert wait_ended(everything, 90 * patience()) == []


def _found(stack, word):
    try:
        return stack.find(word)
    except AssertionError:
        return None


def _answers(stack):
    try:
        return httpx.get(f"{stack.address}/healthz", timeout=30 * patience()).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"http_proxy": "http://127.0.0.1:9"}, r"http://localhost:\d+"),
        ({"GROVE_HTTPS": "1", "GROVE_TRUSTED_PROXIES": "127.0.0.1"}, "https://localhost"),
        ({"GROVE_ALLOWED_HOSTS": "grove.example.org"}, r"http://grove\.example\.org:\d+"),
    ],
    ids=["a web proxy", "TLS", "another host"],
)
def test_up_starts_whatever_is_in_front_of_it(folder, environment, address):
    engine = {"GROVE_ENGINE_COMMAND": shlex.join(small_engine(steps=1))}
    with Stack(folder / next(iter(environment)), {**engine, **environment}) as stack:
        assert re.fullmatch(address, stack.address)
        assert stack.sign_in_link().startswith(stack.address)
