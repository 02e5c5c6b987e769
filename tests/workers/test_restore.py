"""Tests of restorations into this process's own empty installation."""

from __future__ import annotations

import json
import zipfile

import psycopg
import pytest
from django.db import connection

from engine.events.vocabulary import RunState
from tests.conftest import var_settings
from tests.helpers.builders import a_cast
from tests.helpers.installation import WEIGHTS, an_active_run, files_of
from webapp.artifacts.models import Artifact
from webapp.artifacts.store import open_artifact, put
from webapp.experiments.models import Run
from webapp.experiments.services import resume_run
from workers.backup import database
from workers.backup.errors import BackupError
from workers.backup.making import make
from workers.backup.restoring import checked, restore

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.service]


@pytest.fixture
def an_empty_installation(tmp_path_factory, settings):
    """Points this process at an empty database and data directory; yields the latter."""
    var = tmp_path_factory.mktemp("empty")
    for name, value in var_settings(var).items():
        setattr(settings, name, value)
    before = connection.settings_dict["NAME"]
    use_database(before)
    with psycopg.connect(database.address()[0], autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty TEMPLATE template0")
        try:
            use_database("empty")
            yield var
        finally:
            use_database(before)
            admin.execute("DROP DATABASE empty WITH (FORCE)")


def use_database(name):
    connection.close()
    connection.close_pool()
    connection.settings_dict["NAME"] = name


@pytest.fixture
def backup(var_directory, tmp_path_factory):
    """A small backup."""
    an_active_run(a_cast())
    put([WEIGHTS])
    file = tmp_path_factory.mktemp("backup") / "grove.zip"
    make(file, secrets=True)
    return file


def restored(file):
    with checked(file) as opened:
        return restore(opened)


def rewritten(file, change):
    """Writes the archive again with a changed manifest."""
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    record = json.loads(members["manifest.json"])
    change(record)
    members["manifest.json"] = json.dumps(record).encode()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)


def test_a_failed_restoration_leaves_an_empty_installation_and_a_whole_one_is_used(
    backup, an_empty_installation, settings, tmp_path
):
    with pytest.raises(BackupError, match="nothing to back up"):
        make(tmp_path / "none.zip", secrets=False)
    assert not list(tmp_path.glob("*none.zip*"))

    (an_empty_installation / "runs" / "x").mkdir(parents=True)
    with pytest.raises(BackupError, match="is not empty"):
        restored(backup)
    (an_empty_installation / "runs" / "x").rmdir()

    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(backup.read_bytes())
    rewritten(damaged, lambda record: record["tables"].update(experiments_run=7))
    with pytest.raises(BackupError, match="other rows than were backed up"):
        restored(damaged)
    rewritten(damaged, lambda record: record.update(postgres=99))
    with pytest.raises(BackupError, match="is of Postgres 99"):
        restored(damaged)
    assert database.table_names() == database.function_names() == []
    assert not files_of(an_empty_installation)

    settings.SECRET_KEY = "another key than that of the backup"
    result = restored(backup)
    assert result.interrupted == 1
    assert not result.same_key  # no key file is here: GROVE_SECRET_KEY is in force
    (artifact,) = Artifact.objects.all()
    with open_artifact(artifact.pk) as content:
        assert content.read() == WEIGHTS
    run = Run.objects.get(state=RunState.FAILED)
    assert "it was active when the backup" in run.error
    assert resume_run(run.pk).run_state is RunState.QUEUED

    with pytest.raises(BackupError, match="is not empty"):
        restored(backup)
    for folder in (an_empty_installation / "runs").iterdir():
        folder.rename(an_empty_installation / folder.name)
    with pytest.raises(BackupError, match="The database is not empty"):
        restored(backup)


@pytest.mark.large
def test_a_key_that_is_not_the_one_of_the_manifest_undoes_the_restoration(
    backup, an_empty_installation, settings, monkeypatch
):
    monkeypatch.delenv("GROVE_SECRET_KEY", raising=False)
    settings.SECRET_KEY = "the key of this installation, in its file"
    key = an_empty_installation / "secret_key"
    key.write_text(settings.SECRET_KEY)
    rewritten(backup, lambda record: record.update(key="0" * 16))
    with pytest.raises(BackupError, match="is another key"):
        restored(backup)
    assert database.table_names() == []
    assert files_of(an_empty_installation) == {"secret_key"}
    assert key.read_text() == settings.SECRET_KEY
