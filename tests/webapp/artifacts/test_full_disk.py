"""Tests of writes on a full disk: reported, nothing lost, no leftovers of what failed."""

from __future__ import annotations

import json
import os

import pytest

from engine.config.problems import ProblemsConfig
from tests.conftest import var_settings
from tests.helpers.builders import a_held_run
from tests.helpers.datasets import lines_of, some_problems
from tests.helpers.large import large_but
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.small_disk import SmallDisk
from tests.webapp.artifacts.test_uploads import files_below
from webapp import disk
from webapp.artifacts.models import Artifact, Charge, Upload
from webapp.artifacts.selectors import bytes_of
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments.runs_list.listing import RunQuery
from webapp.exports import services
from webapp.exports.models import ExportState, Format, Table
from webapp.telemetry.ingest.ingest import ingest
from workers.jobs.exports import write_one

MIB = 1 << 20
JSON = {"content_type": "application/json"}


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MiB."""
    made = SmallDisk(tmp_path / "disk", 2 * MIB)
    yield made
    made.unmount()


@pytest.fixture
def var(small_disk, settings):
    """Puts all stored files on the small disk."""
    for name, value in var_settings(small_disk.path).items():
        setattr(settings, name, value)
    return small_disk


@pytest.fixture
def bob(client, cast):
    client.force_login(cast.bob)
    return client


def begun(bob, cast, content, name="a.jsonl"):
    new = {"project": cast.project.pk, "kind": "dataset", "name": name, "size": len(content)}
    response = bob.post("/api/v1/uploads", new, **JSON)
    assert response.status_code == 201, response.content
    return f"/api/v1/uploads/{response.json()['id']}"


def sent(bob, path, offset, block):
    headers = {"Upload-Offset": str(offset)}
    kind = "application/octet-stream"
    return bob.patch(path, block, content_type=kind, headers=headers)


def refused(refusal):
    assert refusal.status_code == disk.STATUS, (refusal.status_code, refusal.content[:500])
    assert refusal["Content-Type"] == "application/problem+json"
    assert refusal.json()["detail"] == disk.FULL
    return True


def uploaded(bob, cast, content):
    path = begun(bob, cast, content)
    assert sent(bob, path, 0, content).status_code == 200
    assert bob.post(f"{path}/finish").status_code == 200
    return path.rpartition("/")[2]


def test_an_upload_continues_at_its_offset_once_space_is_free(bob, cast, var):
    content = os.urandom(3 * MIB)
    path = begun(bob, cast, content)
    assert sent(bob, path, 0, content[:MIB]).status_code == 200
    counted, free = bytes_of(cast.project), var.free()
    assert refused(sent(bob, path, MIB, content[MIB:]))
    assert bob.get(path).json()["offset"] == MIB
    assert (bytes_of(cast.project), var.free()) == (counted, free), "nothing is left of the block"
    var.resize(8 * MIB)
    assert sent(bob, path, MIB, content[MIB:]).status_code == 200
    assert bob.post(f"{path}/finish").status_code == 200
    (stored,) = files_below(var.path / "artifacts")
    assert stored.read_bytes() == content
    assert bytes_of(cast.project) == len(content)


def test_an_artifact_is_whole_or_absent_when_its_store_is_full(
    bob, cast, var_directory, settings, small_disk
):
    """The store is a separate disk, to which an upload is copied."""
    store = small_disk.path / "artifacts"
    options = {**settings.STORAGES["artifacts"]["OPTIONS"], "location": store}
    artifacts = {**settings.STORAGES["artifacts"], "OPTIONS": options}
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts}
    content = os.urandom(3 * MIB)
    path = begun(bob, cast, content)
    assert sent(bob, path, 0, content).status_code == 200
    for _ in range(2):  # the second try must not take leftovers of the first for the whole
        assert refused(bob.post(f"{path}/finish"))
        assert not list(files_below(store)) and small_disk.free() > 1.9 * MIB
    assert not Artifact.objects.exists() and not Charge.objects.exists()
    assert bob.get(path).json()["offset"] == len(content), "and nothing has to be sent again"
    small_disk.resize(8 * MIB)
    assert bob.post(f"{path}/finish").status_code == 200
    (stored,) = files_below(store)
    assert stored.read_bytes() == content


def test_an_uploaded_dataset_is_read_again_once_space_is_free(bob, cast, var):
    content = lines_of(some_problems(300))
    upload = uploaded(bob, cast, content)
    counted = bytes_of(cast.project)
    var.fill(64 << 10)
    free = var.free()
    new = {"project": cast.project.pk, "name": "trees", "uploads": [upload]}
    assert refused(bob.post("/api/v1/datasets", new, **JSON))
    assert not DatasetVersion.objects.exists() and Upload.objects.filter(pk=upload).exists()
    assert (bytes_of(cast.project), var.free()) == (counted, free)
    var.resize(16 * MIB)
    response = bob.post("/api/v1/datasets", new, **JSON)
    assert response.status_code == 201, response.content
    assert not Upload.objects.exists()


@pytest.mark.large
def test_the_index_of_a_file_is_completed_once_space_is_free(bob, cast, var, tmp_path, settings):
    listed = tmp_path / "listed"
    listed.mkdir()
    (listed / "trees.jsonl").write_bytes(lines_of(some_problems(2000)))
    settings.DATASETS_DIRS = [listed]
    dataset = Dataset.objects.create(project=cast.project, name="trees")
    spec = ProblemsConfig(dataset=str(listed / "trees.jsonl")).model_dump(mode="json")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, spec=spec, content_hash="0")
    path = f"/api/v1/searches/problems/{version.pk}"
    var.fill(64 << 10)
    free = var.free()
    assert refused(bob.get(path))
    bob.raise_request_exception = False
    page = bob.get(f"/searches/problems/{version.pk}/")
    assert page.status_code == disk.STATUS and b"The disk is full" in page.content
    assert not list(files_below(settings.PROBLEM_INDEX_DIR)) and var.free() >= free - 8192
    var.resize(16 * MIB)
    response = bob.get(path)
    assert response.status_code == 200 and len(json.loads(response.content)) > 0


@pytest.mark.large
@pytest.mark.parametrize("file", large_but([Format.CSV], Format))
def test_an_export_says_so_and_leaves_nothing(cast, var, file):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, list(sample_events(Sample(seed=5, steps=8, trees=8, nodes=30))))
    run.refresh_from_db()

    def written():
        export = services.request_export(
            cast.project, cast.alice, Table.NODES, file, RunQuery(), run
        )
        assert write_one()
        export.refresh_from_db()
        return export

    var.fill(8 << 10)
    free = var.free()
    failed = written()
    assert (failed.export_state, failed.error) == (ExportState.FAILED, disk.FULL)
    assert not list(files_below(var.path / "exports")) and var.free() >= free - 4096
    var.resize(16 * MIB)
    assert written().export_state is ExportState.READY
