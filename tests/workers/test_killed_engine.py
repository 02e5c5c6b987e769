"""Tests of real engine and worker, killed with -9 at random moments, with a reader connected.

The run resumes from its last checkpoint, and every written event is stored and reaches the reader,
once and in order. `MOMENTS` seeds the moments; a failure names them.
"""

from __future__ import annotations

import os
import random
import signal
import threading

import psutil
import pytest
from django.db import connection

from engine.events.log import FILE_NAME, read_all
from engine.events.vocabulary import RunState
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.waiting import eventually, patience
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from tests.workers.engines import a_run, steps_counted
from tests.workers.test_worker import Worker, lapse, state_of
from workers.runs.engine_process import DEFAULT_COMMAND, EngineProcess
from workers.runs.run_files import run_directory

pytestmark = [pytest.mark.large, pytest.mark.django_db(transaction=True), pytest.mark.slow]

MOMENTS = 20261122
STEPS = 14
DEADLINE = 400


class Reader(threading.Thread):
    """Follows a run over a websocket, as a browser does, until the event of its end."""

    def __init__(self, port, run):
        super().__init__(daemon=True)
        self._client = Client(port, a_session(run.created_by))
        self._client.follow(run)

    def run(self):
        with self._client as client:
            while not any(kind == "run.state" and payload["state"] in ("finished", "failed")
                          for _, _, kind, payload in client.events[-50:]):  # fmt: skip
                client.hear(120)

    def events(self):
        """(seq, kind) of all received events."""
        self.join(120 * patience())
        assert not self.is_alive(), f"the end did not come; {len(self._client.events)} events did"
        return [(seq, kind) for seq, _, kind, _ in self._client.events]


def log_of(run):
    file = run_directory(run.pk) / FILE_NAME
    return file.read_bytes() if file.exists() else b""


def lines_of(run):
    return log_of(run).count(b"\n")


def test_no_kill_of_engine_or_worker_costs_an_event_or_a_step(
    var, ray_address, tmp_path, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", ray_address)
    chance = random.Random(MOMENTS)
    training = {"steps": STEPS, "trees_per_step": 4, "validate_every": 99, "checkpoint_every": 2}
    problems = {"seed": 3, "train": 100, "validation": 0, "test": 0}
    config = tiny_config(tiny_policy(tmp_path / "model"), training=training, problems=problems)
    run = a_run(config=config.model_dump(mode="json"))
    with a_server() as served:
        reader = Reader(served.port, run)
        reader.start()
        with Worker(var, command=DEFAULT_COMMAND) as worker:
            moment = chance.randint(10, 300)
            eventually(lambda: lines_of(run) >= moment, f"{moment} lines of the log", DEADLINE)
            engine = EngineProcess.adopt(run_directory(run.pk))
            os.kill(engine.pid, signal.SIGKILL)
            eventually(lambda: b'"run.resumed"' in log_of(run), "the run to resume", DEADLINE)
            later = lines_of(run) + chance.randint(10, 300)
            eventually(lambda: lines_of(run) >= later, f"{later} lines of the log", DEADLINE)
            worker.kill()
        left = EngineProcess.adopt(run_directory(run.pk))
        assert left, f"it ended before {moment} and {later}"
        left = left.pid
        lapse(run)
        with Worker(var, command=DEFAULT_COMMAND):
            ends = (RunState.FINISHED, RunState.FAILED)
            eventually(lambda: state_of(run) in ends, "the run to end", DEADLINE)
        delivered = reader.events()
        served.wait_until_idle()
    assert (state_of(run), run.error) == (RunState.FINISHED, ""), f"killed at {moment} and {later}"
    events = list(read_all(run_directory(run.pk)))
    emitted = [(event.seq, event.kind) for event in events]
    assert [seq for seq, _ in emitted] == list(range(1, len(emitted) + 1))
    assert list(run.events.order_by("seq").values_list("seq", "kind")) == emitted == delivered
    assert steps_counted(run_directory(run.pk)) == list(range(1, STEPS + 1))
    lines = [event.payload["message"] for event in events if event.kind == "log.line"]
    assert "restarted after a crash: the engine was killed by signal 9" in lines
    # The killed worker's engine was left to the next worker, which adopted it and saw its end.
    assert run.restarts == 1 and [kind for _, kind in emitted].count("run.resumed") == 1
    assert EngineProcess.adopt(run_directory(run.pk)) is None
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE
    connection.close()
