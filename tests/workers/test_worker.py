"""Tests of a real Celery worker process: takes runs, survives kills, returns what it holds."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from django.db import connection

from engine.events.vocabulary import RunState
from tests.helpers.alerts import a_channel, a_rule, make_due
from tests.helpers.ports import a_port
from tests.helpers.receivers import a_receiver
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import a_run, kinds_of, small_engine, steps_counted
from webapp.alerts.models import Channel, Delivery, RuleKind
from webapp.comments.models import Notice
from webapp.experiments.runs_list.listing import RunQuery
from webapp.experiments.scheduling.leases import release_all
from webapp.experiments.services import request_stop
from webapp.exports.models import Export, Format, Table
from webapp.exports.services import request_export
from webapp.projects.services import create_project, create_workspace
from workers.local.service_commands import worker_command
from workers.runs.active_runs import owner
from workers.runs.engine_process import EngineProcess
from workers.runs.run_files import run_directory

pytestmark = pytest.mark.django_db(transaction=True)

needs_redis = pytest.mark.skipif(
    not shutil.which("redis-server") and not os.environ.get("CI"),
    reason="redis-server is not installed (apt-get install redis-server)",
)


class Worker:
    """A worker process on the test's database, with a broker and an engine of its own: `command`,
    or a small one with these options."""

    def __init__(self, var, broker="filesystem://", command=None, **engine):
        parts = connection.settings_dict
        self.environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}",
            "GROVE_VAR": str(var),
            "BROKER_URL": broker,
            "GROVE_ENGINE_COMMAND": shlex.join(command or small_engine(**engine)),
        }
        self.log = var / "worker.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                worker_command(), env=self.environment, stdout=output, stderr=output
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10 * patience())

    def announce(self, run):
        """Sends a message about `run` from a process of its own, as the web side does."""
        code = f"from webapp.celery import app; app.send_task('workers.run', ['{run.pk}'])"
        command = [sys.executable, "-c", code]
        subprocess.run(command, env=self.environment, check=True, timeout=120 * patience())

    def kill(self):
        self.process.kill()
        self.process.wait(10 * patience())

    def close(self):
        """SIGTERM, as at the end of `make run`; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120 * patience())


def state_of(run):
    run.refresh_from_db()
    return run.run_state


def lapse(run):
    """Has the same effect as 15 seconds without a renewal."""
    type(run).objects.filter(pk=run.pk).update(lease_expires="2000-01-01T00:00:00Z")


@pytest.mark.large
def test_killing_engine_and_worker_together_loses_no_step(var):
    run = a_run()
    with Worker(var, steps=25, hold_at=3) as worker:
        eventually(lambda: kinds_of(run).count("step.end") == 2, "two steps to end")
        engine = EngineProcess.adopt(run_directory(run.pk))
        os.kill(engine.pid, signal.SIGKILL)
        worker.kill()
    eventually(lambda: engine.poll() is not None, "the engine to end")
    # The end of a worker on this machine is detected; for one on another, 15 seconds of silence
    # count.
    assert release_all(owner(worker.process.pid)) == 1
    with Worker(var, steps=25):
        eventually(lambda: state_of(run) is RunState.FINISHED, "the run to finish")
    assert steps_counted(run_directory(run.pk)) == list(range(1, 26))
    assert run.head_seq == run.events.count()


@pytest.mark.large
def test_runs_given_back_at_sigterm_are_finished_by_the_next_worker(var):
    run = a_run()
    export = request_export(run.project, run.created_by, Table.RUNS, Format.PARQUET, RunQuery())
    with Worker(var, steps=40, hold_at=2) as worker:
        eventually(lambda: "step.end" in kinds_of(run), "a step to end")
        eventually(
            lambda: Export.objects.filter(pk=export.pk, state="ready").exists(), "the export"
        )
        export.refresh_from_db()
        assert export.path.stat().st_size == export.size
        assert worker.close() == 0
    assert EngineProcess.adopt(run_directory(run.pk)) is None
    assert state_of(run) is RunState.RUNNING and run.lease_expires is None
    with Worker(var, steps=40) as worker:
        eventually(lambda: state_of(run) is RunState.FINISHED, "the run to finish")
        assert worker.close() == 0
    assert steps_counted(run_directory(run.pk)) == list(range(1, 41))


@pytest.mark.large
def test_the_next_free_slot_of_a_worker_goes_to_another_workspace(var):
    urgent = [a_run(priority=100) for _ in range(3)]
    late = a_run()
    workspace = create_workspace("Elsewhere", "elsewhere", late.created_by)
    project = create_project(workspace, "Ashes", "ashes", created_by=late.created_by)
    type(late.experiment).objects.filter(pk=late.experiment_id).update(project=project)
    with Worker(var, steps=1):
        eventually(
            lambda: all(state_of(run) is RunState.FINISHED for run in [*urgent, late]),
            "all runs to finish",
        )
    order = sorted([*urgent, late], key=lambda run: run.started_at)
    assert [run.pk for run in order] == [run.pk for run in (urgent[0], late, *urgent[1:])]


def test_web_and_worker_never_pay_for_torch_or_ray():
    paid = "sorted({'torch', 'ray'} & set(sys.modules))"
    check = f"import sys, workers.app, workers.tasks, workers.jobs.requeue; print({paid})"
    out = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {check}"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.config.settings"},
        capture_output=True, text=True, timeout=120 * patience(), check=True,
    )  # fmt: skip
    assert out.stdout.strip() == "[]"


@pytest.fixture
def redis_url(tmp_path):
    port = a_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    server = subprocess.Popen([*command, "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    eventually(lambda: _listens(port), "Redis to listen")
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait(10 * patience())


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.large
@pytest.mark.redis
@needs_redis
def test_over_a_real_redis_a_run_announced_three_times_is_claimed_once(var, redis_url):
    run = a_run(dispatched_at="2100-01-01T00:00:00Z")  # so the sweep does not touch it
    with (
        Worker(var, redis_url, steps=3, hold_at=2) as worker,
        Worker(var, redis_url, steps=3, hold_at=2) as other,
    ):
        for _ in range(3):
            worker.announce(run)
        eventually(lambda: "step.end" in kinds_of(run), "a step to end")
        request_stop(run.pk)
        eventually(lambda: state_of(run) is RunState.STOPPED, "the run to stop")
        assert worker.close() == 0
        assert other.close() == 0
    run.refresh_from_db()
    assert (run.run_state, run.fencing) == (RunState.STOPPED, 1)


def test_a_message_through_the_embedded_broker_is_taken(var):
    run = a_run(dispatched_at="2100-01-01T00:00:00Z")
    with Worker(var, steps=2) as worker:
        worker.announce(run)
        eventually(lambda: state_of(run) is RunState.FINISHED, "the run to finish")


@pytest.mark.large
def test_a_worker_posts_the_notice_that_a_killed_one_had_taken(var, monkeypatch):
    """The first worker is killed while the receiver lets it wait."""
    monkeypatch.setenv("GROVE_ALERT_NETWORKS", "127.0.0.0/8")
    run = a_run()
    with a_receiver() as receiver:
        channel = a_channel(run.created_by, "https://hooks.example/")
        Channel.objects.filter(pk=channel.pk).update(url=f"{receiver.url}/hang")
        a_rule(run.created_by, run.project, RuleKind.RUN_ENDED, channels=[channel])
        request_stop(run.pk)
        assert Notice.objects.filter(user=run.created_by).count() == 1
        with Worker(var) as worker:
            eventually(lambda: receiver.taken, "the first attempt")
            worker.kill()
        Channel.objects.filter(pk=channel.pk).update(url=f"{receiver.url}/ok")
        make_due()
        with Worker(var):
            eventually(lambda: Delivery.objects.get().state == "sent", "the notice to arrive")
        first, second = receiver.taken
        assert first[1]["webhook-id"] == second[1]["webhook-id"]
    assert Notice.objects.filter(user=run.created_by).count() == 1
