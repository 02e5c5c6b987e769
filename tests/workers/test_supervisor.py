"""Tests of a supervised run: events stored, end recorded, no step lost by crash or kill."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from engine.config.errors import ConfigError
from engine.config.schema import STARTERS
from engine.events.drafts import Draft, DraftWriter
from engine.events.log import EventLog, read_all
from engine.events.vocabulary import LogLine, RunState
from engine.recipes import load_recipe
from engine.resources.ray_folder import RayFolder
from tests.helpers.builders import a_model_folder
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import (
    a_run,
    kinds_of,
    let_go,
    small_engine,
    states_of,
    steps_counted,
)
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments.scheduling.leases import LeaseLost, release, take_lease
from webapp.experiments.services import request_stop, resume_run
from webapp.projects.services import ensure_demo
from webapp.registry.evaluations import EvaluationSettings, evaluate
from webapp.registry.model_files.imports import import_folder
from webapp.telemetry.models import Drafts
from workers.jobs import job_thread
from workers.runs import engine_process as ep
from workers.runs.active_runs import supervise_run
from workers.runs.engine_process import EngineProcess
from workers.runs.engine_watch import EngineWatch, explained, memory_of
from workers.runs.log_shipper import Shipper, offset_after, restore_log
from workers.runs.run_files import run_directory
from workers.runs.supervisor import RunSupervisor, renew_seconds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("var")]


class Kept:
    """A `RunSupervisor` at work in its own thread, as in a worker."""

    def __init__(self, run, owner="worker", pause_seconds=0.05, command=None, **options):
        self.closing = threading.Event()
        self.fencing = take_lease(run.pk, owner, 15)
        assert self.fencing is not None
        self.run_supervisor = RunSupervisor(
            run.pk, self.fencing, self.closing, command or small_engine(**options), pause_seconds
        )
        self.error = None
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self):
        try:
            self.run_supervisor.supervise()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def join(self):
        self._thread.join(120.0 * patience())
        assert not self._thread.is_alive(), "the supervisor does not end"
        return self


def state_of(run):
    run.refresh_from_db()
    return run.run_state


def test_a_run_is_kept_from_queued_to_finished_and_every_event_is_stored():
    run = a_run()
    Kept(run, steps=3).join()
    assert state_of(run) is RunState.FINISHED
    assert states_of(run) == ["starting", "running", "finished"]
    assert run.head_seq == run.events.count() == len(list(read_all(run_directory(run.pk))))
    assert run.lease_expires is None and run.step == 3


def test_a_requested_stop_reaches_the_engine_and_the_run_resumes():
    run = a_run()
    kept = Kept(run, steps=100, hold_at=2)
    eventually(lambda: "step.end" in kinds_of(run), "a step to end")
    request_stop(run.pk)
    kept.join()
    assert state_of(run) is RunState.STOPPED
    resume_run(run.pk)
    Kept(run, steps=run.step + 2).join()
    assert state_of(run) is RunState.FINISHED
    assert steps_counted(run_directory(run.pk)) == list(range(1, run.step + 1))


def test_a_killed_engine_is_started_again_and_no_step_counts_twice():
    run = a_run()
    kept = Kept(run, steps=20, hold_at=4)
    eventually(lambda: kinds_of(run).count("step.start") == 4, "step 4 to start")
    os.kill(kept.run_supervisor.engine.pid, signal.SIGKILL)
    let_go(run_directory(run.pk))
    kept.join()
    assert state_of(run) is RunState.FINISHED
    assert "run.resumed" in kinds_of(run)
    assert steps_counted(run_directory(run.pk)) == list(range(1, 21))


def test_what_a_killed_engine_was_writing_is_discarded_before_the_next_one_starts():
    run = a_run()
    kept = Kept(run, pause_seconds=600, steps=3, hold_at=2)
    eventually(lambda: kinds_of(run).count("step.start") == 2, "step 2 to start")
    writer = DraftWriter(run_directory(run.pk), "oak")
    Drafts.objects.create(run=run, watched_until="2100-01-01T00:00Z")
    eventually(writer.is_due, "the run to be watched")
    writer.write([Draft(1, 1, "oak", 3, "def")])
    eventually(lambda: b"def" in bytes(Drafts.objects.get(run=run).body), "the draft")
    rays = RayFolder(run_directory(run.pk))
    os.kill(kept.run_supervisor.engine.pid, signal.SIGKILL)
    eventually(lambda: bytes(Drafts.objects.get(run=run).body) == b"[]", "no draft")
    assert not rays.path.exists() and not rays.for_ray.parent.exists()
    assert "run.resumed" not in kinds_of(run)
    kept.closing.set()
    kept.join()


def test_an_engine_that_crashes_once_recovers():
    run = a_run()
    Kept(run, steps=3, crash_at=2).join()
    assert state_of(run) is RunState.FINISHED and run.error == ""
    assert states_of(run).count("starting") == 2


def test_an_engine_that_crashes_always_fails_with_the_first_cause():
    run = a_run()
    Kept(run, steps=3, crash_always=2).join()
    assert state_of(run) is RunState.FAILED
    assert run.error == "ValueError: step 2 went wrong"
    assert states_of(run).count("starting") == 4
    assert kinds_of(run)[-2:] == ["error", "run.state"]


def test_an_error_that_the_engine_reports_twice_is_final_and_is_the_one_shown():
    run = a_run()
    Kept(run, fail="model oak: model.safetensors is damaged").join()
    assert state_of(run) is RunState.FAILED
    assert run.error == "model oak: model.safetensors is damaged"
    assert states_of(run).count("starting") == 2


def test_a_config_the_engine_refuses_is_not_retried_and_shows_why():
    run = a_run()
    Kept(run, refuse="ResumeError: seed: the run was begun with 1").join()
    assert state_of(run) is RunState.FAILED
    assert run.error == "ResumeError: seed: the run was begun with 1"
    assert states_of(run) == ["starting", "failed"]


def test_an_engine_that_hangs_in_a_wait_of_its_start_is_ended_and_the_setting_named(settings):
    run = a_run()
    kept = Kept(run, hangs="agents to load")
    eventually(lambda: "run.waiting" in kinds_of(run), "the run to wait")
    settings.START_SECONDS = 0.0
    kept.join()
    assert state_of(run) is RunState.FAILED and states_of(run) == ["starting", "failed"]
    assert "waiting for agents to load" in run.error and "GROVE_START_MINUTES" in run.error
    assert run.events.get(kind="error").payload["message"] == run.error
    assert EngineProcess.adopt(run_directory(run.pk)) is None


def test_an_engine_that_hangs_without_a_word_is_ended_as_well(settings):
    settings.START_SECONDS = 0.1
    run = a_run()
    Kept(run, hangs="silently").join()
    assert state_of(run) is RunState.FAILED and "GROVE_START_MINUTES" in run.error


def test_the_deadline_of_the_start_outlives_the_worker(settings):
    run = a_run()
    first = Kept(run, hangs="agents to load")
    eventually(lambda: "run.waiting" in kinds_of(run), "the run to wait")
    type(run).objects.filter(pk=run.pk).update(lease_expires="2000-01-01T00:00:00Z")
    settings.START_SECONDS = 0.0
    Kept(run, owner="another").join()
    first.join()
    assert state_of(run) is RunState.FAILED and "waiting for agents to load" in run.error


def test_a_run_that_has_started_has_no_such_deadline(settings, tmp_path):
    settings.START_SECONDS = -1.0
    engine = EngineProcess.start(tmp_path, small_engine(hold_at=1))
    try:
        assert "GROVE_START_MINUTES" in EngineWatch(engine).exceeded()
        assert EngineWatch(engine, RunState.RUNNING).exceeded() == ""
        watch = EngineWatch(engine)
        eventually(
            lambda: any(event.kind == "step.start" for event in read_all(tmp_path)),
            "a step to start",
        )
        for event in read_all(tmp_path):
            watch.observe(event)
        assert watch.exceeded() == ""
    finally:
        engine.kill()


MIB = 1 << 20


@pytest.mark.parametrize("forks", [0, 3], ids=["one process", "its processes together"])
def test_an_engine_that_takes_too_much_memory_is_ended_and_the_setting_named(forks, settings):
    settings.ENGINE_MEMORY_BYTES = 400 * MIB
    run = a_run()
    Kept(run, forks=forks, private_mb=160 if forks else 800).join()
    assert state_of(run) is RunState.FAILED
    assert "400 MiB" in run.error and "GROVE_ENGINE_MEMORY_MIB" in run.error
    assert EngineProcess.adopt(run_directory(run.pk)) is None


def test_only_memory_that_the_kernel_refused_is_put_down_to_the_limit():
    for cause in (
        "MemoryError",
        "RuntimeError: can't allocate memory: you tried",
        "std::bad_alloc",
    ):
        assert explained(cause).startswith(f"{cause}; an engine gets")
    for cause in ("torch.OutOfMemoryError: CUDA out of memory", "ValueError: step 2 went wrong"):
        assert explained(cause) == cause


def test_a_full_disk_is_named_with_what_lets_the_run_go_on():
    for cause in ("OSError: [Errno 28] No space left on device", "[Errno 122] Disk quota exceeded"):
        said = explained(cause)
        assert said.startswith(f"{cause}; the server's disk is full") and "resume the run" in said


def test_memory_that_the_processes_of_an_engine_share_counts_once(settings, tmp_path):
    engine = EngineProcess.start(tmp_path, small_engine(forks=3, shared_mb=160))
    try:
        eventually(lambda: len(list(tmp_path.glob("uses-*"))) == 3, "three uses of memory")
        assert 160 * MIB < memory_of(engine.parent_pid, 0) < 320 * MIB
        assert (
            memory_of(engine.parent_pid, 1 << 40) > 4 * 160 * MIB
        )  # the quick sum, an upper bound
    finally:
        engine.kill()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_members_read_of_a_failure_which_file_it_was_but_not_where_the_server_has_it(
    client, var_directory
):
    model = var_directory / "models" / "elm"
    shutil.copytree(STARTERS / "oak", model)
    (model / "model.safetensors").write_bytes(b"damaged")
    config = load_recipe("demo", {"agents.0.model": str(model)})
    run = a_run(config=config.model_dump(mode="json"))
    log = run_directory(run.pk) / "engine.log"
    log.parent.mkdir(parents=True)
    log.write_text(f'  File "{Path(ep.__file__)}", line 7, in start\n')  # of an earlier start
    Kept(run, command=ep.DEFAULT_COMMAND).join()
    assert state_of(run) is RunState.FAILED
    client.force_login(run.created_by)
    error = client.get(f"/api/v1/runs/{run.pk}").json()["error"]
    events = b"".join(client.get(f"/api/v1/runs/{run.pk}/events")).decode()
    assert "models/elm" in error and "models/elm" in events
    assert 'File \\"workers/runs/engine_process.py\\", line 7' in events
    for place in (var_directory, Path.cwd(), Path.home(), sys.prefix):
        assert f"{place}" not in error and f"{place}" not in events, events
    assert str(model) in log.read_text(), "the operator's own log names it"


def test_a_worker_that_closes_gives_its_run_back_with_a_checkpoint():
    run = a_run()
    kept = Kept(run, steps=30, hold_at=2)
    eventually(lambda: "step.end" in kinds_of(run), "a step to end")
    kept.closing.set()
    kept.join()
    assert state_of(run) is RunState.RUNNING and run.lease_expires is None
    assert EngineProcess.adopt(run_directory(run.pk)) is None
    Kept(run, owner="another", steps=30).join()
    assert state_of(run) is RunState.FINISHED
    assert steps_counted(run_directory(run.pk)) == list(range(1, 31))


def test_a_supervisor_that_lost_its_lease_leaves_the_engine_to_the_next():
    run = a_run()
    first = Kept(run, steps=40, hold_at=2)
    eventually(lambda: "step.end" in kinds_of(run), "a step to end")
    pid = first.run_supervisor.engine.pid
    type(run).objects.filter(pk=run.pk).update(lease_expires="2000-01-01T00:00:00Z")
    second = Kept(run, owner="another", steps=40)
    first.join()
    assert isinstance(first.error, LeaseLost)
    assert eventually(lambda: second.run_supervisor.engine, "the adoption").pid == pid
    second.closing.set()
    second.join()
    assert "run.resumed" not in kinds_of(run)


def test_a_supervisor_slower_than_its_lease_loses_the_run_and_names_the_setting(monkeypatch):
    monkeypatch.setenv("GROVE_RUN_LEASE_SECONDS", "0.3")
    run = a_run()
    first = Kept(run, steps=40, hold_at=2)
    eventually(lambda: "step.end" in kinds_of(run), "the first step to end")
    with transaction.atomic():
        # It cannot renew its lease while we hold the row.
        held = type(run).objects.select_for_update().get(pk=run.pk)
        assert held.lease_expires < timezone.now() + timedelta(seconds=5)
        token = eventually(lambda: take_lease(run.pk, "another", 60), "the lease to lapse", 10)
    first.join()
    assert isinstance(first.error, LeaseLost)
    assert str(first.error) == (
        f"run {run.pk}: the lease with fencing token {first.fencing} is lost; on a busy machine "
        "raise GROVE_RUN_LEASE_SECONDS or GROVE_PATIENCE"
    )
    release(run.pk, token)
    second = Kept(run, owner="another", steps=40)
    second.closing.set()
    second.join()


@pytest.mark.parametrize("lease, every", [("15", 2.0), ("60", 2.0), ("1.5", 0.2)])
def test_a_lease_is_renewed_often_enough_and_requests_are_read_at_once(monkeypatch, lease, every):
    monkeypatch.setenv("GROVE_RUN_LEASE_SECONDS", lease)
    monkeypatch.setenv("GROVE_JOB_LEASE_SECONDS", str(2 * float(lease)))
    assert renew_seconds() == job_thread.renew_seconds() == pytest.approx(every)


def test_an_unobserved_exit_is_reported_by_the_next_supervisor():
    run = a_run()
    first = Kept(run, steps=5, hold_at=1)
    eventually(
        lambda: "run.state" in kinds_of(run) and state_of(run) is RunState.RUNNING,
        "the run to be running",
    )
    engine = first.run_supervisor.engine
    type(run).objects.filter(pk=run.pk).update(fencing=first.fencing + 1)
    first.join()
    let_go(run_directory(run.pk))
    eventually(lambda: engine.poll() is not None, "the engine to end")
    type(run).objects.filter(pk=run.pk).update(lease_expires=None)
    Kept(run, owner="another").join()
    assert state_of(run) is RunState.FINISHED
    assert steps_counted(run_directory(run.pk)) == [1, 2, 3, 4, 5]


def test_lines_that_the_disk_lost_come_back_from_the_database(tmp_path):
    run = a_run()
    log = EventLog(tmp_path)
    for number in range(10):
        log.append(LogLine(level="info", message=f"línea {number}"))
    log.close()
    whole = (tmp_path / "events.jsonl").read_bytes()
    Shipper(run.pk, take_lease(run.pk, "worker", 15), tmp_path).ship()
    (tmp_path / "events.jsonl").write_bytes(whole[: offset_of_line(whole, 6) + 7])
    assert restore_log(run.pk, tmp_path) == 4
    restored = list(read_all(tmp_path))
    assert [event.seq for event in restored] == list(range(1, 11))
    assert [event.payload["message"] for event in restored][6:] == [
        f"línea {number}" for number in range(6, 10)
    ]


def offset_of_line(text, lines):
    return len(b"".join(text.splitlines(keepends=True)[:lines]))


def test_the_offset_after_some_lines_is_read_across_chunks(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo two\n\nfour\n")
    assert [offset_after(log, lines, read_bytes=7) for lines in range(5)] == [0, 4, 12, 13, 18]
    with pytest.raises(ValueError, match="has 4 lines, the database 5"):
        offset_after(log, 5)


def test_a_version_with_lost_files_fails_its_run_with_the_reason(var_directory, tmp_path):
    user, project = ensure_demo()
    version = import_folder(project, "elm", a_model_folder(tmp_path / "elm"))
    shutil.rmtree(version.path)
    shutil.rmtree(var_directory / "artifacts")
    dataset = DatasetVersion.objects.create(
        dataset=Dataset.objects.create(project=project, name="generated"),
        number=1, spec={"dataset": "generated", "seed": 5}, content_hash="a" * 64,
    )  # fmt: skip
    run = evaluate(version, dataset, EvaluationSettings(problems=3), user).run
    supervise_run(run.pk)
    assert state_of(run) is RunState.FAILED and "FileNotFoundError" in run.error


@pytest.mark.parametrize(
    "config",
    [{"compute": {"ray_address": "ray://elsewhere:10001"}},
     {"agents": [{"name": "oak", "model": "starter:oak", "chat_template": "/etc/hostname"}]}],
    ids=["cluster", "template"],
)  # fmt: skip
def test_a_stored_forbidden_setting_starts_no_engine(config):
    run = a_run(config=config)
    kept = Kept(run).join()
    assert isinstance(kept.error, ConfigError)
    kept.run_supervisor.abandon(str(kept.error))
    assert state_of(run) is RunState.FAILED and kept.run_supervisor.engine is None
    assert "ray_address" in run.error or "chat_template" in run.error
    assert not run_directory(run.pk).exists()
