"""Tests of artifacts in a bucket of a real server that speaks S3, with all their operations."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta

import boto3
import pytest

from engine.config.problems import ProblemsConfig
from engine.problems.source import load_problem_set
from tests.helpers.bucket_server import a_bucket_server
from tests.helpers.builders import a_model_folder
from tests.helpers.datasets import lines_of, some_problems
from tests.webapp.registry.test_model_imports import uploaded
from webapp.artifacts import store
from webapp.artifacts.bucket import RANGE_BYTES
from webapp.artifacts.collecting import collect
from webapp.artifacts.models import Artifact, Upload
from webapp.config.environment import read_artifact_storage
from webapp.datasets.models import DatasetVersion
from webapp.datasets.references import for_engine
from webapp.registry.deletion import delete_model
from webapp.registry.model_files.export import archive
from webapp.registry.model_files.imports import import_first
from workers.jobs.reports import ReportJob

JSON = {"content_type": "application/json"}
KEYS = {"GROVE_S3_KEY": "key", "GROVE_S3_SECRET": "secret", "GROVE_S3_REGION": "eu-north-1"}


@pytest.fixture(scope="module")
def server():
    """The address of a server with a bucket."""
    with a_bucket_server() as address:
        _client(address).create_bucket(
            Bucket="grove", CreateBucketConfiguration={"LocationConstraint": "eu-north-1"}
        )
        yield address


@pytest.fixture
def names(server, var_directory, settings):
    """Lists the contents of the bucket, which stores the artifacts now."""
    environment = {**KEYS, "GROVE_S3_BUCKET": "grove", "GROVE_S3_ENDPOINT": server}
    stored = read_artifact_storage(environment, var_directory)
    settings.STORAGES = {**settings.STORAGES, "artifacts": stored}

    def stored_names() -> list[str]:
        listed = _client(server).list_objects_v2(Bucket="grove")
        return [one["Key"] for one in listed.get("Contents", ())]

    yield stored_names
    for name in stored_names():
        _client(server).delete_object(Bucket="grove", Key=name)


def _client(address):
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    return boto3.client("s3", endpoint_url=address, region_name="eu-north-1", **keys)


def test_an_object_is_read_whole_or_in_part_and_removed(cast, names):
    content = bytes(range(256)) * (RANGE_BYTES // 256) + b"the end"
    artifact = store.put([content[:1000], content[1000:]])
    assert names() == [f"artifacts/{artifact.pk[:2]}/{artifact.pk}"]
    assert store.put([content]) == artifact, "it is stored once"
    with store.open_artifact(artifact.pk) as file:
        assert file.read() == content and file.read(1) == b""
        file.seek(-7, io.SEEK_END)
        assert file.read(100) == b"the end"
        file.seek(300)
        assert file.read(3) == content[300:303]
    assert store.local_path(artifact.pk).read_bytes() == content
    artifact.refresh_from_db()
    assert store.remove(artifact) and names() == []
    with pytest.raises(FileNotFoundError, match=artifact.pk):
        store.open_artifact(artifact.pk)


def test_garbage_strays_and_copies_are_collected(cast, names, settings):
    kept, unused = store.put([b"kept"]), store.put([b"unused"])
    stray = store.put([b"stray"])
    Artifact.objects.filter(pk=stray.pk).delete()
    for one in (kept, unused):
        store.local_path(one.pk)
    fields = {"project": cast.project, "created_by": cast.bob, "size": 4, "kind": "dataset"}
    upload = Upload.objects.create(artifact=kept, expires="2100-01-01T00:00Z", **fields)
    assert len(names()) == 3 and collect().artifacts == 0, "they are fresh"
    result = collect(timedelta(0))
    assert (result.artifacts, result.bytes) == (1, len(b"unused"))
    assert names() == [f"artifacts/{store.name_of(kept.pk)}"]
    assert [one.name for one in settings.ARTIFACT_COPIES_DIR.iterdir()] == [kept.pk]
    upload.delete()


def test_a_dataset_goes_from_its_upload_to_an_engine(client, cast, names):
    client.force_login(cast.bob)
    content = lines_of(some_problems(4))
    new = {"project": cast.project.pk, "kind": "dataset", "name": "p.jsonl", "size": len(content)}
    upload = client.post("/api/v1/uploads", new, **JSON).json()["id"]
    path = f"/api/v1/uploads/{upload}"

    def sent(offset: int, until: int):
        body = {"content_type": "application/octet-stream"}
        headers = {"Upload-Offset": str(offset)}
        return client.patch(path, content[offset:until], headers=headers, **body)

    assert sent(0, 1000).json()["offset"] == 1000
    assert sent(0, 500).status_code == 409 and names() == []
    assert sent(client.get(path).json()["offset"], len(content)).status_code == 200
    assert client.post(f"{path}/finish").status_code == 200 and len(names()) == 1
    request = {"project": cast.project.pk, "name": "trees", "uploads": [upload]}
    made = client.post("/api/v1/datasets", request, **JSON)
    assert made.status_code == 201, made.json()
    version = DatasetVersion.objects.get()
    assert names() == [f"artifacts/{store.name_of(version.artifact_id)}"]
    page = client.get(f"/datasets/versions/{version.pk}/problems/1/").content.decode()
    assert some_problems()[0].entry_point in page
    down = client.get(f"/api/v1/datasets/versions/{version.pk}/content")
    assert b"".join(down).count(b"\n") == 4
    assert ReportJob().do_one()
    version.refresh_from_db()
    assert version.faulty == 0
    sizes = {"train": 2, "validation": 1, "test": 1}
    problems = for_engine({"problems": {"dataset": version.reference, **sizes}}, version)[
        "problems"
    ]
    assert len(load_problem_set(ProblemsConfig(**problems)).train) == 2
    assert client.delete(f"/api/v1/datasets/versions/{version.pk}").status_code == 204
    assert names() == []


def test_a_model_comes_in_and_goes_out(cast, names, tmp_path):
    folder = a_model_folder(tmp_path / "elm")
    model = import_first(cast.project, "elm", uploaded(cast, folder), cast.bob)
    version = model.versions.get()
    with zipfile.ZipFile(io.BytesIO(b"".join(archive(version)))) as made:
        assert all(made.read(one.name) == one.read_bytes() for one in folder.iterdir())
    delete_model(model)
    collect(timedelta(0))
    assert names() == []


def test_a_bucket_that_refuses_or_does_not_answer_is_reported(cast, names, settings, server):
    artifact = store.put([b"here"])
    for changes, why in (
        ({"bucket_name": "elsewhere"}, "refuses .*NoSuchBucket|is not in the bucket"),
        ({"endpoint_url": "http://127.0.0.1:9"}, "cannot be reached"),
    ):
        stored = settings.STORAGES["artifacts"]
        changed = {**stored, "OPTIONS": {**stored["OPTIONS"], **changes}}
        settings.STORAGES = {**settings.STORAGES, "artifacts": changed}
        with pytest.raises(OSError, match=why):
            store.open_artifact(artifact.pk)
        with pytest.raises(OSError, match="bucket"):
            store.put([b"other"])
        settings.STORAGES = {**settings.STORAGES, "artifacts": stored}
    assert store.open_artifact(artifact.pk).read() == b"here"
    assert [one.pk for one in Artifact.objects.all()] == [artifact.pk]
