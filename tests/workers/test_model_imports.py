"""Tests of a worker's imports of models: with the real engine command, behind its limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from django.db import connection
from django.utils import timezone

from tests.helpers.builders import a_cast
from tests.helpers.gguf_uploads import a_header, a_tiny_gguf, an_upload
from tests.helpers.waiting import eventually, patience
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import bytes_of
from webapp.audit.selectors import AuditQuery, entries
from webapp.registry.model_imports import states
from webapp.registry.model_imports.requests import request_gguf
from webapp.registry.models import Model, ModelImport, ModelVersion
from webapp.registry.versions.cards import card
from workers.jobs import limited_engine, model_imports
from workers.jobs.model_imports import ModelImportJob
from workers.processes import kill_all
from workers.runs.active_runs import closing
from workers.runs.engine_process import LIMITED_EXEC

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "Tiny model.Q4_1.gguf"


@pytest.fixture
def cast(var_directory):
    return a_cast()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The bytes of a whole model."""
    return a_tiny_gguf(tmp_path_factory.mktemp("gguf") / NAME).read_bytes()


def requested(cast, content, name="tiny"):
    return request_gguf(cast.project, name, an_upload(cast, content, NAME), cast.bob)


def done(one):
    """The import after a worker's attempt, which leaves no scratch directory."""
    assert ModelImportJob().do_one()
    return after(one)


def after(one):
    one.refresh_from_db()
    assert not left_behind()
    return one


def left_behind():
    from django.conf import settings

    return [path.name for path in settings.UPLOADS_DIR.iterdir()]


def test_a_gguf_file_becomes_a_version_with_its_origin(cast, tiny):
    one = requested(cast, tiny)
    sha256 = one.artifact_id
    assert bytes_of(cast.project) == len(tiny)
    result = done(one)
    assert (result.state, result.error, result.progress) == ("done", "", 1.0)
    version = result.version
    assert str(version) == "tiny v1" and version.created_by == cast.bob
    origin = version.metadata["origin"]
    assert (origin["kind"], origin["file"], origin["sha256"]) == ("gguf", NAME, sha256)
    assert origin["quantisation"].startswith("Q4_1")
    assert "Converted from the GGUF file Tiny model" in card(version).replace("\\", "")
    assert {path.name for path in Path(version.path).iterdir()} == set(
        version.files.values_list("name", flat=True)
    )
    lineage = json.loads((Path(version.path) / "lineage.json").read_text())
    assert (lineage["file"], lineage["sha256"]) == (NAME, sha256)
    assert not Artifact.objects.filter(pk=sha256).exists(), "the uploaded file is not kept"
    assert bytes_of(cast.project) == sum(file.size for file in version.files.all())
    texts = [entry.text for entry in entries(cast.project.workspace, AuditQuery(), None, 20)[0]]
    assert "bob added the model tiny v1" in texts
    again = done(requested(cast, tiny, "other"))
    assert str(again.version) == "other v1" and not ModelImportJob().do_one()


def test_a_file_that_cannot_be_converted_fails_with_its_cause_and_is_discarded(cast, tiny):
    result = done(requested(cast, tiny[: len(tiny) // 2]))
    assert result.state == "failed" and NAME in result.error
    assert result.error.startswith(NAME), "neither a traceback nor a folder of the server"
    assert not result.can_retry and nothing_is_stored()
    result = done(requested(cast, a_header()))
    assert result.state == "failed" and nothing_is_stored()


def nothing_is_stored():
    return not (
        Artifact.objects.exists() or Model.objects.exists() or ModelVersion.objects.exists()
    )


@pytest.mark.parametrize(
    "setting, value, why",
    [
        ("IMPORT_MEMORY_BYTES", 40 << 20, "GROVE_IMPORT_MEMORY_MIB"),
        ("IMPORT_SECONDS", 0.1, "GROVE_IMPORT_MINUTES"),
        ("ARTIFACT_MOST_BYTES", {"model": 1 << 20}, "GROVE_MODEL_FILE_MIB"),
    ],
)
def test_a_limit_of_the_operator_ends_the_import_and_names_its_variable(
    cast, tiny, settings, setting, value, why
):
    one = requested(cast, tiny)
    setattr(settings, setting, value)
    result = done(one)
    assert result.state == "failed" and why in result.error
    assert result.can_retry and not ModelVersion.objects.exists()
    assert Artifact.objects.get().pk == result.artifact_id, "its file is kept, and nothing else"


@pytest.mark.large
def test_a_model_beyond_the_quota_is_not_registered_until_there_is_room(cast, tiny, settings):
    one = requested(cast, tiny)
    quota = settings.ARTIFACT_QUOTA_BYTES
    settings.ARTIFACT_QUOTA_BYTES = 2 * len(tiny)
    result = done(one)
    assert result.state == "failed" and "GROVE_QUOTA_MIB" in result.error
    assert Artifact.objects.get().pk == result.artifact_id and not Model.objects.exists()
    settings.ARTIFACT_QUOTA_BYTES = quota
    states.retry(result)
    assert done(result).state == "done"


def test_cpu_time_is_limited():
    limits = {"memory_bytes": 1 << 32, "cpu_seconds": 1, "file_bytes": 1 << 20}
    endless = "while True: pass"
    command = [sys.executable, "-I", "-S", str(LIMITED_EXEC), json.dumps(limits)]
    ended = subprocess.run([*command, sys.executable, "-c", endless])
    assert ended.returncode == -signal.SIGXCPU
    cause = model_imports._failure(ended.returncode, "", {**limits, "cpu_seconds": 7200})
    assert "120 minutes" in str(cause) and "GROVE_IMPORT_CPU_MINUTES" in str(cause)
    assert not cause.is_final


@pytest.mark.parametrize(
    "status, errors, why, is_final",
    [
        (2, "ModelError: a.gguf: tensor x: type IQ2 is not supported; use Q4_1",
         "a.gguf: tensor x: type IQ2 is not supported; use Q4_1", True),
        (2, "ModelError: model: needs 9 bytes of disk, 1 are free; make room", "make room", False),
        (2, "ModelError: model: No space left on device", "disk is full", False),
        (2, "InstallError: elm: the disk is full; make room there, and run the command again: it "
         "goes on where it stopped", "disk is full", False),
        (2, "InstallError: elm 1: no connection to the package index X; check the network, and run "
         "the command again", "X; check the network, and retry", True),
        (1, "Traceback ...\nKeyError: 'x'", "KeyError: 'x'", False),
        (-9, "", "signal 9", False),
        (3, "", "status 3", False),
    ],
)  # fmt: skip
def test_only_what_another_attempt_would_repeat_is_final(status, errors, why, is_final):
    limits = {"memory_bytes": 1, "cpu_seconds": 1, "file_bytes": 1}
    cause = model_imports._failure(status, errors, limits)
    assert why in str(cause) and cause.is_final == is_final
    assert "command" not in str(cause), "there is a button on the page"


def engines():
    return [one for one in psutil.Process().children(recursive=True) if "models" in cmdline(one)]


def cmdline(process):
    try:
        words = process.cmdline()
    except psutil.NoSuchProcess:
        return []
    return words if "-m" in words[1:2] else []


@contextmanager
def under_way(one):
    """A worker's thread and its engine's process, stopped before it has converted anything."""
    taken = states.take()
    assert taken.pk == one.pk
    job = ModelImportJob()
    work = threading.Thread(target=lambda: (job.work(taken), connection.close()), daemon=True)
    work.start()
    (engine,) = eventually(engines, "an engine")
    engine.suspend()
    tree = [engine, *engine.parents()[:1]]
    yield engine
    work.join(30 * patience())
    assert not work.is_alive(), "the worker is still at it"
    _, alive = psutil.wait_procs(tree, timeout=30 * patience())
    assert not alive, "its engine is left"


def test_a_cancelled_import_ends_its_engine(cast, tiny, client):
    client.force_login(cast.bob)
    one = requested(cast, tiny)
    with under_way(one):
        assert client.post(f"/api/v1/models/imports/{one.pk}/cancel").status_code == 200
    assert after(one).state == "cancelled" and not ModelVersion.objects.exists()
    states.retry(one)
    assert done(one).state == "done"


@pytest.mark.large
def test_an_import_whose_row_is_deleted_ends_its_engine(cast, tiny):
    one = requested(cast, tiny)
    with under_way(one):
        ModelImport.objects.all().delete()
    assert not left_behind() and not ModelVersion.objects.exists()


def test_a_worker_that_shuts_down_gives_the_import_back(cast, tiny):
    one = requested(cast, tiny)
    try:
        with under_way(one):
            closing.set()
    finally:
        closing.clear()
    result = after(one)
    assert (result.state, result.attempts, result.progress) == ("queued", 0, 0.0)
    assert done(one).state == "done"


def test_an_engine_that_is_killed_fails_the_import_which_can_be_retried(cast, tiny):
    one = requested(cast, tiny)
    with under_way(one) as engine:
        engine.kill()
    result = after(one)
    assert result.state == "failed" and "killed by signal 9" in result.error
    assert result.can_retry


def test_another_worker_completes_what_a_killed_one_left(cast, tiny, settings):
    one = requested(cast, tiny)
    lost = states.take()
    forgotten = settings.UPLOADS_DIR / f"import-{one.pk}-{lost.fencing}" / "model"
    forgotten.mkdir(parents=True)
    (forgotten / "model.safetensors").write_bytes(b"half")
    assert not ModelImportJob().do_one(), "its lease holds"
    ModelImport.objects.update(lease_expires=timezone.now() - timedelta(seconds=1))
    result = done(one)
    assert result.state == "done" and result.version.number == 1
    with pytest.raises(states.ImportLost):
        states.renew(lost, 0.9, "Converting")


HOLDER = """
import sys, time
import django
django.setup()
from pathlib import Path
from workers.jobs.limited_engine import LimitedEngine
limits = {"memory_bytes": 1 << 34, "cpu_seconds": 600, "file_bytes": 1 << 30}
LimitedEngine(Path(sys.argv[1]), ["models", "import", sys.argv[2], "no-such"], limits, {})
print("started", flush=True)
time.sleep(86_400)
"""


def test_no_engine_outlives_a_worker_that_is_killed(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.config.settings"}
    worker = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(scratch), str(tmp_path / "tiny.gguf")],
        env=environment, stdout=subprocess.PIPE, cwd=Path(limited_engine.__file__).parents[2],
    )  # fmt: skip
    try:
        assert worker.stdout.readline() == b"started\n"
        holder = psutil.Process(worker.pid)
        (engine,) = eventually(
            lambda: [one for one in holder.children(recursive=True) if "models" in cmdline(one)],
            "an engine",
        )
        engine.suspend()  # it would end by itself
        tree = holder.children(recursive=True)
        assert engine in tree and len(tree) == 2
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    _, alive = psutil.wait_procs(tree, timeout=30 * patience())
    kill_all(alive)
    assert not alive
