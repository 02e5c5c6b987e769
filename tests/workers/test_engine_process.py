"""Tests of an engine process: started once, adopted, stopped, without leftovers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from engine.events.log import EventLog, read_all
from tests.helpers.waiting import eventually
from tests.workers.engines import let_go, small_engine
from workers.processes import family, has_ended
from workers.runs.engine_environment import download_environment, engine_environment
from workers.runs.engine_process import EXIT_UNKNOWN, EngineProcess, first_cause

pytestmark = pytest.mark.service

STARTER = """
import sys
from pathlib import Path
from workers.runs.engine_process import EngineProcess
EngineProcess.start(Path(sys.argv[1]), sys.argv[2:])
"""


@pytest.fixture
def run_dir(tmp_path):
    yield tmp_path
    if engine := EngineProcess.adopt(tmp_path):
        engine.kill()


def exit_code_of(engine, every=0.02):
    eventually(lambda: engine.poll() is not None, "the engine to end", every=every)
    return engine.poll()


def test_a_finished_engine_reports_its_exit_code(run_dir):
    assert exit_code_of(EngineProcess.start(run_dir, small_engine())) == 0


def test_sigterm_makes_it_stop_with_its_own_code(run_dir):
    engine = EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1))
    eventually(lambda: list(read_all(run_dir)), "the first event")
    assert engine.stop() == 3


def test_an_engine_that_does_not_listen_is_killed(run_dir):
    engine = EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1, deaf=1))
    eventually(lambda: list(read_all(run_dir)), "the first event")
    assert engine.stop(seconds=0.3) == -signal.SIGKILL


def test_a_second_engine_in_the_same_directory_is_refused(run_dir):
    EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1))
    with pytest.raises(RuntimeError, match="already running"):
        EngineProcess.start(run_dir, small_engine())


def test_an_engine_of_a_dead_worker_is_adopted_with_its_exit_code(run_dir):
    command = small_engine(steps=8, hold_at=2)
    subprocess.run([sys.executable, "-c", STARTER, str(run_dir), *command], check=True)
    engine = EngineProcess.adopt(run_dir)
    assert psutil.Process(engine.pid).is_running()
    let_go(run_dir)
    assert exit_code_of(engine) == 0
    assert EngineProcess.adopt(run_dir) is None


def test_a_pid_file_that_names_a_stranger_is_not_adopted(run_dir):
    (run_dir / "engine.json").write_text(f'{{"pid": {os.getpid()}, "engine": 1}}')
    assert EngineProcess.adopt(run_dir) is None


def sleepers_of(engine):
    return [process for process in family(engine.pid) if process.name() == "sleep"]


def test_processes_of_a_killed_engine_die_with_it(run_dir):
    engine = EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1, children=2))
    sleepers = eventually(
        lambda: both if len(both := sleepers_of(engine)) == 2 else None, "two children"
    )
    os.kill(engine.pid, signal.SIGKILL)
    assert exit_code_of(engine) == -signal.SIGKILL
    assert all(has_ended(sleeper) for sleeper in sleepers)


def test_an_engine_dies_with_its_guardian(tmp_path):
    # Twenty times, because an ending process briefly lives without a command line to identify it.
    for index in map(str, range(20)):
        run_dir = tmp_path / index
        run_dir.mkdir()
        engine = EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1))
        inner = psutil.Process(engine.pid)
        inner.parent().kill()
        assert exit_code_of(engine, every=0.0) == EXIT_UNKNOWN
        assert has_ended(inner)
        EventLog(run_dir).close()  # raises if another writer is left


def test_an_unwatched_engine_ends_itself(run_dir):
    engine = EngineProcess.start(run_dir, small_engine(steps=2, hold_at=1))
    os.utime(run_dir / "lease", (1, 1))
    assert exit_code_of(engine) == 4


def test_the_first_cause_is_the_last_traceback_of_the_log(run_dir):
    engine = EngineProcess.start(run_dir, small_engine(crash_at=2))
    assert exit_code_of(engine) == 1
    assert first_cause(run_dir) == "ValueError: step 2 went wrong"


def test_a_program_that_does_not_exist_says_so(run_dir):
    engine = EngineProcess.start(run_dir, ["/no/such/program"])
    assert exit_code_of(engine) != 0
    assert "cannot start /no/such/program" in first_cause(run_dir)


def test_an_engine_that_does_not_start_in_time_names_the_setting(run_dir, monkeypatch):
    os.mkfifo(run_dir / "engine.json.draft")  # where its parent writes, and so waits for a reader
    monkeypatch.setenv("GROVE_ENGINE_START_SECONDS", "0.25")
    monkeypatch.setenv("GROVE_KILL_SECONDS", "0.25")
    with pytest.raises(
        RuntimeError,
        match=r"the engine did not start: nothing within 0\.25 s; on a busy machine raise "
        "GROVE_ENGINE_START_SECONDS or GROVE_PATIENCE",
    ):
        EngineProcess.start(run_dir, small_engine(steps=1000, pause=0.05))
    mine = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    assert not [line for line in mine if str(run_dir) in line]


SECRETS = (
    "DATABASE_URL", "BROKER_URL", "GROVE_SECRET_KEY", "GROVE_TOKEN", "GROVE_S3_SECRET",
    "PGPASSWORD", "DJANGO_KEY", "HF_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN",
    "WANDB_API_KEY", "NVIDIA_API_KEY", "VLLM_API_KEY", "RAY_REDIS_PASSWORD", "SLURM_JWT",
    "OTEL_EXPORTER_OTLP_HEADERS", "SSH_AUTH_SOCK", "HTTPS_PROXY",
    "PIP_INDEX_URL", "UNHEARD_OF",
)  # fmt: skip
DUMP = """
import json, os, pathlib, subprocess, sys
child = subprocess.run(["env", "-0"], capture_output=True).stdout.decode()
pathlib.Path(sys.argv[1], "found").write_text(json.dumps([dict(os.environ), child]))
"""
"""Engine that writes down its environment, and that of a process of its own."""


def test_an_engine_inherits_what_is_listed_and_no_secret(run_dir, monkeypatch, settings):
    for name in SECRETS:
        monkeypatch.setenv(name, f"hunter2 of {name}")
    needed = {
        "RAY_ADDRESS": "ray.example:6379", "CUDA_VISIBLE_DEVICES": "0", "LC_ALL": "C.UTF-8",
        "NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "2", "VLLM_MAX_TOKENS_PER_EXPERT": "9",
        "GROVE_PATIENCE": "7", "GROVE_RANKS_GRACE_SECONDS": "8",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "GROVE_ENGINE_METRICS": "127.0.0.1:9102",
        "GROVE_ENGINE_METRICS_TOKEN_FILE": "/run/secrets/metrics_token",
    }  # fmt: skip
    for name, value in needed.items():
        monkeypatch.setenv(name, value)
    settings.ENGINE_ENVIRONMENT = frozenset({"GITHUB_TOKEN"})
    engine = EngineProcess.start(run_dir, [sys.executable, "-c", DUMP])
    assert exit_code_of(engine) == 0
    own, of_child = json.loads((run_dir / "found").read_text())
    assert own.items() >= needed.items() and own["PATH"] == os.environ["PATH"]
    for seen in (str(own), of_child):
        assert [name for name in SECRETS if f"hunter2 of {name}" in seen] == ["GITHUB_TOKEN"]
    assert not own.keys() & (set(SECRETS) - {"GITHUB_TOKEN"})


def test_only_an_import_that_downloads_has_the_index_and_the_proxy(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("PYPI_TOKEN", "hunter2")
    assert download_environment().items() >= {
        ("PIP_INDEX_URL", "https://packages.example/simple"),
        ("https_proxy", "http://proxy.example:3128"),
    }
    assert not download_environment().keys() & engine_environment().keys()
    assert "hunter2" not in str({**download_environment(), **engine_environment()})
