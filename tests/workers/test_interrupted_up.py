"""Tests of a start that is ended at each of its steps: the first cause, what is kept, what to do.

`held_up.py` holds it there. One data directory for all: what an ended start leaves is what the next
one begins with.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.e2e.stack import ROOT
from tests.helpers.database import a_migrated_postgres
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import small_engine
from tests.workers.held_up import GO, HELD
from workers.processes import family, kill_all, wait_ended

pytestmark = [pytest.mark.service, pytest.mark.large, pytest.mark.slow]
SCRIPT = Path(__file__).with_name("held_up.py")
STEPS = (
    "Starting Postgres",
    "Preparing the database",
    "Registering the starter agents",
    "Starting web and worker",
    "Launching the demo experiment",
)


@pytest.fixture(scope="module")
def var(request):
    with tempfile.TemporaryDirectory(prefix="grove-interrupted-") as folder:
        path = Path(folder) / "var"
        a_migrated_postgres(path / "postgres", request.config.cache.mkdir("databases"))
        yield path


class Start:
    """A start that is at `step`."""

    def __init__(self, var, step, folder):
        self.var, self.folder, self.output = var, folder, folder / "output"
        given = {n: v for n, v in os.environ.items() if n not in ("DATABASE_URL", "BROKER_URL")}
        environment = {
            **given, "GROVE_VAR": str(var), "GROVE_PORT": "0", "PYTHONPATH": str(ROOT),
            "GROVE_ENGINE_COMMAND": shlex.join(small_engine(steps=1)),
        }  # fmt: skip
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), step, str(folder)],
                env=environment, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def said(self):
        return self.output.read_text()

    def is_held(self):
        assert self.process.poll() is None, self.said()
        return (self.folder / HELD).exists()

    def go_on(self):
        (self.folder / GO).touch()

    def postgres(self):
        return next(p for p in family(self.process.pid) if p.name() == "postgres")

    def end(self, number):
        """Sends the signal and returns the exit status; nothing may be left."""
        processes = family(self.process.pid)
        self.process.send_signal(number)
        return self.status(processes)

    def status(self, processes):
        status = self.process.wait(120 * patience())
        assert wait_ended(processes, 60 * patience()) == [], self.said()
        return status


@contextmanager
def held(var, step, tmp_path):
    start = Start(var, step, tmp_path)
    try:
        eventually(start.is_held, f"the start to be at {step!r}", 300)
        yield start
    finally:
        kill_all(family(start.process.pid))
        start.process.wait(30 * patience())


@pytest.mark.parametrize(
    "step, number", [*((step, signal.SIGTERM) for step in STEPS), (STEPS[-1], signal.SIGINT)]
)
def test_a_signal_is_the_cause_at_every_step(var, tmp_path, step, number):
    with held(var, step, tmp_path) as start:
        assert start.end(number) == 0
        said = start.said()
    assert f"Stopped by {number.name} while {step[0].lower()}{step[1:]}" in said
    assert f"Nothing runs any more, and {var} is kept: start again with `make run`." in said
    assert "did not start" not in said and "Error" not in said and "Traceback" not in said


def test_a_signal_during_a_query_is_the_cause_and_not_the_query_s_error(var, tmp_path):
    with held(var, STEPS[-1], tmp_path) as start:
        url = (var / "postgres.url").read_text()
        with closing(psycopg.connect(url)) as other:  # the server will have ended it
            other.execute("LOCK TABLE experiments_experiment IN ACCESS EXCLUSIVE MODE")
            start.go_on()
            eventually(lambda: waits_for_lock(url, "experiments_experiment"), "the launch to wait")
            assert start.end(signal.SIGTERM) == 0
        said = start.said()
    assert "Stopped by SIGTERM while launching the demo experiment." in said
    assert "did not start" not in said and "Error" not in said and "Traceback" not in said


def waits_for_lock(url, table):
    with psycopg.connect(url) as opened:
        return opened.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [table]
        ).fetchone()[0]


@pytest.mark.parametrize("step", STEPS[1:])
def test_a_killed_database_is_the_cause_and_not_its_client_s_error(var, tmp_path, step):
    with held(var, step, tmp_path) as start:
        processes = family(start.process.pid)
        database = start.postgres()
        database.kill()
        # It interrupts the step at once, without `go_on`.
        assert start.status(processes) == 1
        said = start.said()
    assert f"Postgres ended while {step[0].lower()}{step[1:]} (by SIGKILL)." in said
    assert f"See {var / 'postgres' / 'postgres.log'}. Nothing is lost: start again" in said
    assert "did not start" not in said and "Traceback" not in said


def test_services_that_are_killed_while_the_demo_is_launched_are_started_again(var, tmp_path):
    with held(var, STEPS[-1], tmp_path) as start:
        services = [p for p in family(start.process.pid)[1:] if p.ppid() == start.process.pid]
        services = [p for p in services if p.name() != "postgres"]
        assert len(services) == 2
        kill_all(services)
        assert wait_ended(services, 30 * patience()) == []
        start.go_on()
        for name in ("web", "worker"):
            eventually(
                lambda name=name: f"The {name} ended (by SIGKILL; see " in start.said(),
                f"the end of the {name} to be said", 60,
            )  # fmt: skip
        assert "Sign in (works once)" in start.said()
        assert start.end(signal.SIGTERM) == 0
        assert "did not start" not in start.said() and "Traceback" not in start.said()
