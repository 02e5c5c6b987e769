"""Tests of readiness: each check tells the truth, by name, within its deadline."""

from __future__ import annotations

import threading

import pytest
from django.db import DEFAULT_DB_ALIAS, connection

from tests.helpers.ports import a_port
from tests.helpers.small_disk import SmallDisk
from tests.helpers.waiting import eventually, patience
from webapp.config.database.base import DatabaseWrapper, Pool
from webapp.operations.readiness import CHECKS, Readiness

pytestmark = pytest.mark.django_db(transaction=True)
AWAY = {"min_size": 0, "max_size": 4, "timeout": 3600.0, "open": True}


@pytest.fixture
def failing(var_directory, settings):
    """Returns the names of the checks that fail now; the log has the reasons."""
    settings.BROKER_DIR = var_directory / "broker"
    return lambda: {name for name, word in Readiness(CHECKS).answer().items() if word != "ok"}


def test_a_whole_installation_is_ready(client, failing):
    assert failing() == set()
    answer = client.get("/readyz")
    assert answer.status_code in (200, 503) and set(answer.json()["checks"]) == set(CHECKS)


def applied(name):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('experiments', %s, now())",
            [name],
        )


def removed(name):
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'experiments' AND name = %s", [name]
        )


def test_a_newer_schema_is_not_ready(failing):
    applied("0999_of_tomorrow")
    try:
        assert failing() == {"migrations"}
    finally:
        removed("0999_of_tomorrow")


def test_a_pending_migration_is_not_ready(failing):
    removed("0009_given")
    try:
        assert failing() == {"migrations"}
    finally:
        applied("0009_given")


def test_a_store_or_a_disk_that_cannot_be_written_is_not_ready(failing, settings, tmp_path):
    file = tmp_path / "file"
    file.touch()
    settings.GROVE_VAR = settings.BROKER_DIR = file
    assert failing() == {"broker", "disk"}
    artifacts = settings.STORAGES["artifacts"]
    options = {**artifacts["OPTIONS"], "location": file}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**artifacts, "OPTIONS": options}}
    assert failing() == {"artifacts", "broker", "disk"}


def test_a_full_disk_of_artifacts_is_not_ready(failing, settings, tmp_path):
    small = SmallDisk(tmp_path / "artifacts", 2 << 20)
    try:
        artifacts = settings.STORAGES["artifacts"]
        options = {**artifacts["OPTIONS"], "location": small.path / "not-made-yet"}
        settings.STORAGES = {**settings.STORAGES, "artifacts": {**artifacts, "OPTIONS": options}}
        assert failing() == {"artifacts"}
    finally:
        small.unmount()


def test_a_full_data_directory_is_not_ready(failing, settings, tmp_path):
    small = SmallDisk(tmp_path / "var", 2 << 20)
    try:
        settings.GROVE_VAR = small.path
        assert failing() == {"disk"}
    finally:
        small.unmount()


def test_a_database_that_does_not_answer_is_not_ready(client, failing, monkeypatch):
    address = {"host": "127.0.0.1", "port": str(a_port()), "user": "x", "dbname": "x"}
    with monkeypatch.context() as patch, Pool(kwargs=address, **AWAY) as away:
        patch.setitem(DatabaseWrapper._connection_pools, DEFAULT_DB_ALIAS, away)
        assert failing() == {"database", "migrations"}
        connection.close()
        assert client.get("/healthz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_a_broker_that_does_not_answer_is_not_ready(failing, settings):
    settings.BROKER_URL = f"redis://127.0.0.1:{a_port()}/0"
    assert failing() == {"broker"}


def test_a_check_that_hangs_is_failing_and_not_started_again(monkeypatch):
    monkeypatch.setenv("GROVE_READY_SECONDS", "0.2")
    started, release = [], threading.Event()

    def hangs():
        started.append(True)
        assert release.wait(600 * patience())

    ready = Readiness({"slow": hangs, "quick": lambda: None}, kept_seconds=0)
    try:
        for _ in range(3):  # while it hangs: an answer that waited for it would never come
            assert ready.answer() == {"slow": "failing", "quick": "ok"}
        assert len(started) == 1
    finally:
        release.set()
    eventually(lambda: ready.answer()["slow"] == "ok", "the check to answer")


def test_strangers_learn_no_reasons(client, failing, settings, tmp_path):
    settings.GROVE_VAR = tmp_path / "missing" / "secret-name"
    answer = client.get("/readyz")
    assert "secret-name" not in answer.content.decode()
    assert set(answer.json()) == {"status", "checks"}


def test_machines_next_to_the_server_need_no_tls(client, settings, var_directory):
    settings.SECURE_SSL_REDIRECT = True
    answers = {path: client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")}
    assert 301 not in answers.values() and answers["/metrics"] == 404
    assert client.get("/sign-in/").status_code == 301
