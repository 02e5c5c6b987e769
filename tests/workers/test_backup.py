"""Tests of backups: a drill of making and restoring one, and what a backup is of."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from engine.events.log import read_all
from tests.helpers.builders import a_cast, some_events
from tests.helpers.installation import WEIGHTS, an_active_run, an_installation, files_of, write_log
from tests.helpers.site import Server
from tests.helpers.small_disk import SmallDisk
from tests.helpers.waiting import eventually, patience
from webapp.artifacts.collecting import collect
from webapp.artifacts.models import Artifact
from webapp.artifacts.store import put, storage
from webapp.registry.models import Model, ModelVersion
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.selectors import folded
from workers.backup import database
from workers.backup.archive import reading
from workers.backup.errors import BackupError
from workers.backup.making import make
from workers.local.postgres import EmbeddedPostgres
from workers.runs.run_files import run_directory

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.service]


def manage(var, *words, **environment):
    """Runs a command in a process of its own, on its own embedded server."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "BROKER_URL")}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env={**inherited, "GROVE_VAR": str(var), **environment},
        capture_output=True, text=True, timeout=SECONDS * patience(),
    )  # fmt: skip


def table_rows(cursor, table):
    columns = cursor.execute(f'SELECT * FROM "{table}" LIMIT 0').description
    order = ", ".join(str(index + 1) for index in range(len(columns)))
    texts = ", ".join(f'"{column.name}"::text' for column in columns)
    return cursor.execute(f'SELECT {texts} FROM "{table}" ORDER BY {order}').fetchall()


def all_tables():
    """Every row of every table of this test's database, as text."""
    with psycopg.connect(database.address()[0]) as opened, opened.cursor() as cursor:
        return {name: table_rows(cursor, name) for name in database.table_names()}


LEFT = {"accounts_cache", "exports_export"}
"""Tables whose rows are in no backup."""
COMPLETED = {"django_content_type", "auth_permission"}
"""Tables that `migrate` completes; a test before this one may have emptied them."""
CHANGED = (
    LEFT
    | COMPLETED
    | {
        "experiments_run",  # the active run, looked at below
        "telemetry_event",  # its last event
        "comments_notice",  # its owner learns that it failed
        "registry_modelversion",  # its path
    }
)


@pytest.mark.slow
@pytest.mark.large
def test_a_restored_backup_is_the_same_installation(var_directory, tmp_path_factory, settings):
    token, finished, active = an_installation(var_directory)
    finished.refresh_from_db()
    tables, state = all_tables(), folded(finished)
    assert state["seq"] > 50 and state["trees"]
    contents = [one.pk for one in Artifact.objects.all()]
    folder = tmp_path_factory.mktemp("elsewhere")
    file, var = folder / "grove.zip", folder / "var"
    made = make(file, secrets=True)
    assert not made.manifest.absent
    assert file.stat().st_mode & 0o077 == 0
    assert not (var_directory / "backup").exists()

    cut = folder / "cut.zip"
    cut.write_bytes(file.read_bytes()[:-100])
    refused = manage(var, "restore", str(cut))
    assert refused.returncode == 1 and "is no whole backup" in refused.stderr, refused.stderr
    assert "Traceback" not in refused.stderr and not (var / "postgres").exists()

    done = manage(var, "restore", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 runs were active" in done.stdout and "another secret key" not in done.stdout

    assert len(contents) == 2
    for sha256 in contents:
        stored = (var / "artifacts" / sha256[:2] / sha256).read_bytes()
        assert hashlib.sha256(stored).hexdigest() == sha256
    log = (run_directory(finished.pk) / "events.jsonl").read_bytes()
    assert (var / "runs" / str(finished.pk) / "events.jsonl").read_bytes() == log
    of_active = var / "runs" / str(active.pk)
    assert [event.seq for event in read_all(of_active)] == list(range(1, 11))
    assert files_of(of_active) == {
        "config.json", "events.jsonl", "checkpoints/step-000004/manifest.json",
        "checkpoints/step-000004/oak/model.safetensors",
    }  # fmt: skip

    server = EmbeddedPostgres(var / "postgres")
    try:
        url = server.start()
        compare_tables(url, tables, var, active)
        site = Server(var, url)
        site.start()
        try:
            answer = httpx.get(
                f"{site.url}/api/v1/runs/{finished.pk}/folded",
                headers={"Authorization": f"Bearer {token}"}, timeout=60 * patience(),
            )  # fmt: skip
        finally:
            site.kill()
        assert answer.status_code == 200, answer.text
        assert answer.json() == state
    finally:
        server.stop()


def compare_tables(url, before, var, active):
    with psycopg.connect(url) as opened, opened.cursor() as cursor:
        after = {name: table_rows(cursor, name) for name in before}
        run = cursor.execute(
            "SELECT state, error, lease_owner, config->'agents'->0->>'model' "
            "FROM experiments_run WHERE id = %s", [active.pk]
        ).fetchone()  # fmt: skip
        last = cursor.execute(
            "SELECT seq, kind, payload->>'state' FROM telemetry_event WHERE run_id = %s "
            "ORDER BY seq DESC LIMIT 1", [active.pk]
        ).fetchone()  # fmt: skip
        path = cursor.execute("SELECT path FROM registry_modelversion").fetchone()
    assert {name for name in before if before[name] != after[name]} <= CHANGED
    assert all(set(before[name]) <= set(after[name]) for name in COMPLETED)
    assert set(before["telemetry_event"]) < set(after["telemetry_event"])
    assert len(after["comments_notice"]) == len(before["comments_notice"]) + 1
    assert len(before["experiments_run"]) == len(after["experiments_run"]) == 3
    model = str(var / "model-versions" / "x")
    assert path == (model,)
    assert run[0] == "failed" and "it was active when the backup" in run[1]
    assert run[2:] == ("", model)
    assert last == (10, "run.state", "failed")


def test_a_backup_without_secrets_has_none(var_directory, tmp_path, settings):
    an_installation(var_directory)
    Session.objects.create(session_key="k" * 32, session_data="", expire_date=timezone.now())
    file = tmp_path / "plain.zip"
    made = make(file, secrets=False)
    assert made.manifest.tables["django_session"] == 0
    with zipfile.ZipFile(file) as opened:
        whole = b"".join(opened.read(name) for name in opened.namelist())
    assert settings.SECRET_KEY.encode() not in whole and b"k" * 32 not in whole
    with_secrets = make(tmp_path / "all.zip", secrets=True).manifest
    assert with_secrets.tables["django_session"] == 1
    assert "secrets/secret_key" in {entry.path for entry in with_secrets.files}


def test_contents_that_several_files_share_are_stored_once(var_directory, tmp_path):
    an_installation(var_directory)
    made = make(tmp_path / "grove.zip", secrets=False)
    shared = [entry for entry in made.manifest.files if entry.bytes == len(WEIGHTS)]
    assert len(shared) == 2  # an artifact, and the same weights in a checkpoint
    with zipfile.ZipFile(tmp_path / "grove.zip") as opened:
        names = opened.namelist()
    assert len(names) == len(set(names))
    assert sum(shared[0].sha256 in name for name in names) == 1


def test_a_backup_is_of_one_moment_while_a_run_goes_on(var_directory, tmp_path):
    run, fencing = an_active_run(a_cast())
    stop, seqs = threading.Event(), []

    def engine():
        while not stop.is_set():
            first = 10 + len(seqs) * 5
            batch = some_events(first, first + 4)
            write_log(run, batch)
            seqs.append(ingest(run.pk, fencing, batch))
        connection.close()

    folder = run_directory(run.pk)
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)[:9]
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    worker = threading.Thread(target=engine)
    worker.start()
    try:
        eventually(lambda: len(seqs) > 2, "the first batches")
        made = make(tmp_path / "grove.zip", secrets=False).manifest
        during = len(seqs)
        eventually(lambda: len(seqs) > during, "a batch after the backup")
    finally:
        stop.set()
        worker.join()
    (log,) = (entry for entry in made.files if entry.path.endswith("events.jsonl"))
    with reading(tmp_path / "grove.zip") as backup:
        text = b"".join(backup.content(log))
    assert text.count(b"\n") == made.tables["telemetry_event"] < max(seqs)


def test_nothing_is_removed_from_the_store_while_a_backup_is_made(var_directory, tmp_path):
    an_installation(var_directory)
    loose = put([b"nothing refers to it"])

    def collected():
        try:
            return collect(timedelta(0)).artifacts
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        with database.artifacts_held():
            assert other.submit(collected).result() == 0
        assert Artifact.objects.filter(pk=loose.pk).exists()
        assert other.submit(collected).result() == 1


def test_an_artifact_that_is_lost_or_damaged_is_named_and_the_others_are_backed_up(
    var_directory, tmp_path
):
    lost, damaged, whole = (put([bytes([n]) * 100]) for n in range(3))
    storage().delete(f"{lost.pk[:2]}/{lost.pk}")
    path = var_directory / "artifacts" / damaged.pk[:2] / damaged.pk
    path.chmod(0o600)
    path.write_bytes(b"x" * 100)
    made = make(tmp_path / "grove.zip", secrets=False).manifest
    assert {one.path for one in made.absent} == {f"artifacts/{lost.pk}", f"artifacts/{damaged.pk}"}
    assert f"artifacts/{whole.pk}" in {entry.path for entry in made.files}


def test_a_model_whose_files_are_not_stored_yet_is_named(var_directory, tmp_path):
    model = Model.objects.create(project=a_cast().project, name="oak")
    for number, folder in enumerate(("model-versions/x", "runs/1/checkpoints/x"), 1):
        path = var_directory / folder
        version = ModelVersion.objects.create(
            model=model, number=number, sha256="", parameters=6, path=str(path)
        )
        version.files.create(name="model.safetensors", size=1, sha256="0" * 64)
    made = make(tmp_path / "grove.zip", secrets=False).manifest
    assert [(one.path, "oak v1 yet" in one.reason) for one in made.absent] == [
        (str(var_directory / "model-versions" / "x"), True)
    ]


def test_a_full_disk_leaves_nothing_of_a_backup_and_is_named(var_directory, tmp_path, monkeypatch):
    an_active_run(a_cast())
    put([WEIGHTS])
    monkeypatch.setenv("DATABASE_URL", "the one of this test")
    disk = SmallDisk(tmp_path / "small", 64 << 10)
    try:
        with pytest.raises(SystemExit) as refusal:
            call_command("backup", disk.path / "grove.zip")
        assert not list(disk.path.iterdir())
    finally:
        disk.unmount()
    assert f"grove.zip was not written. No space is left in {disk.path}" in str(refusal.value)
    assert not [one for one in var_directory.rglob("*") if "backup" in one.name]


def test_an_existing_file_is_never_replaced(var_directory, tmp_path):
    file = tmp_path / "grove.zip"
    file.write_text("precious")
    with pytest.raises(BackupError, match="exists"):
        make(file, secrets=False)
    assert file.read_text() == "precious"
    pipe, nowhere, link = (tmp_path / name for name in ("pipe", "nowhere", "link"))
    os.mkfifo(pipe)
    nowhere.symlink_to(tmp_path / "not-there")
    link.symlink_to(file)
    stages = []
    for path in (pipe, nowhere, link):
        with pytest.raises(BackupError, match=f"{path.name} exists\\. Name a file"):
            make(path, secrets=False, report=stages.append)
    assert not stages and nowhere.is_symlink() and not nowhere.exists()
    with pytest.raises(BackupError, match="is no directory"):
        make(tmp_path / "missing" / "grove.zip", secrets=False)
    assert not list(tmp_path.glob("*.part"))
