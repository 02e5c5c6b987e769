"""Tests of uploads: piece by piece, whole or not at all, without leftovers."""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from django.db import IntegrityError, connection
from django.db.models import ProtectedError
from django.utils import timezone

from tests.helpers.builders import a_token
from tests.helpers.waiting import patience
from webapp.accounts.models import Scope
from webapp.artifacts import services, store
from webapp.artifacts.collecting import collect
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import bytes_of, references
from webapp.projects.models import InProjectQuerySet

CONTENT = b"a content that comes in pieces"
AT_ONCE = timedelta(0)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def bob(client, cast, var_directory):
    client.force_login(cast.bob)
    return client


def begun(client, cast, size=30, **fields):
    body = {"project": cast.project.pk, "kind": "dataset", "name": "a.jsonl", "size": size}
    headers = {"Idempotency-Key": key} if (key := fields.pop("key", None)) else {}
    body |= fields
    return client.post("/api/v1/uploads", body, content_type="application/json", headers=headers)


def sent(client, upload, offset, content):
    kind = {"content_type": "application/octet-stream"}
    headers = {"Upload-Offset": str(offset)}
    return client.patch(f"/api/v1/uploads/{upload}", content, headers=headers, **kind)


def an_upload(cast, content=CONTENT, **fields):
    upload = services.begin(
        cast.project, cast.bob, Upload.Kind.DATASET, "a.jsonl", len(content), **fields
    )
    return services.append(upload, 0, BytesIO(content))


def test_a_file_comes_in_pieces_and_becomes_an_artifact(bob, cast, var_directory):
    digest = hashlib.sha256(CONTENT).hexdigest()
    upload = begun(bob, cast, sha256=digest).json()["id"]
    assert sent(bob, upload, 0, CONTENT[:7]).json()["offset"] == 7
    early = bob.post(f"/api/v1/uploads/{upload}/finish")
    assert early.status_code == 409 and early.json()["offset"] == 7
    sent(bob, upload, 7, CONTENT[7:])
    assert bob.get(f"/api/v1/uploads/{upload}").json()["offset"] == len(CONTENT)
    for _ in range(2):  # repeated, nothing changes
        done = bob.post(f"/api/v1/uploads/{upload}/finish")
        assert done.json()["sha256"] == digest
    with store.open_artifact(digest) as file:
        assert file.read() == CONTENT
    assert [path.name for path in files_below(var_directory)] == [digest]


def test_an_interrupted_upload_receives_the_offset_to_continue_at(bob, cast):
    upload = begun(bob, cast).json()["id"]
    sent(bob, upload, 0, CONTENT[:9])
    for offset in (0, 5, 12):
        answer = sent(bob, upload, offset, b"xyz")
        assert answer.status_code == 409 and answer.json()["offset"] == 9
    assert [one["offset"] for one in bob.get("/api/v1/uploads").json()["uploads"]] == [9]


def test_a_head_request_returns_the_offset_of_an_interrupted_upload(bob, cast, var_directory):
    digest = hashlib.sha256(CONTENT).hexdigest()
    upload = begun(bob, cast, sha256=digest).json()["id"]
    sent(bob, upload, 0, CONTENT[:9])
    (mine,) = bob.get(f"/api/v1/uploads?announced={digest}").json()["uploads"]
    address = f"/api/v1/uploads/{mine['id']}"
    response = bob.head(address)
    assert response.status_code == 200 and response.content == b""
    assert (response["Upload-Offset"], response["Upload-Length"]) == ("9", str(len(CONTENT)))
    assert (response["Upload-Complete"], response["Cache-Control"]) == ("?0", "no-store")
    sent(bob, upload, int(response["Upload-Offset"]), CONTENT[9:])
    assert bob.post(f"{address}/finish").json()["sha256"] == digest
    assert bob.head(address)["Upload-Complete"] == "?1"


def test_bytes_that_the_disk_lost_must_be_sent_again(bob, cast, var_directory):
    upload = begun(bob, cast).json()["id"]
    sent(bob, upload, 0, CONTENT[:9])
    os.truncate(var_directory / "uploads" / upload, 4)
    assert bob.head(f"/api/v1/uploads/{upload}")["Upload-Offset"] == "4"


def test_an_uploading_token_may_read_its_offset(client, cast, var_directory):
    headers = {"Authorization": f"Bearer {a_token(cast.bob, cast.project, Scope.DATASETS_WRITE)}"}
    client.defaults["HTTP_AUTHORIZATION"] = headers["Authorization"]
    upload = begun(client, cast).json()["id"]
    assert client.head(f"/api/v1/uploads/{upload}")["Upload-Offset"] == "0"
    assert client.get("/api/v1/uploads").status_code == 200
    assert client.get("/api/v1/runs").status_code == 403


def test_the_same_key_is_the_same_upload(bob, cast):
    first = begun(bob, cast, key="night").json()["id"]
    sent(bob, first, 0, CONTENT[:9])
    again = begun(bob, cast, key="night").json()
    assert again["id"] == first and Upload.objects.count() == 1
    other = begun(bob, cast, key="night", size=5)
    assert other.status_code == 409 and other.json()["problems"][0]["path"] == "Idempotency-Key"


def test_a_lying_digest_is_refused_and_nothing_stays(bob, cast, var_directory):
    upload = begun(bob, cast, sha256="0" * 64).json()["id"]
    sent(bob, upload, 0, CONTENT)
    refusal = bob.post(f"/api/v1/uploads/{upload}/finish")
    assert refusal.status_code == 422
    (problem,) = refusal.json()["problems"]
    assert problem["path"] == "sha256" and hashlib.sha256(CONTENT).hexdigest() in problem["reason"]
    assert not files_below(var_directory) and not Upload.objects.exists()
    assert not Artifact.objects.exists()


def test_no_more_comes_in_than_was_announced(bob, cast, settings):
    settings.ARTIFACT_CHUNK_BYTES = 20
    upload = begun(bob, cast).json()["id"]
    assert sent(bob, upload, 0, CONTENT).status_code == 413
    sent(bob, upload, 0, CONTENT[:20])
    refusal = sent(bob, upload, 20, CONTENT[20:] + b"!")
    assert refusal.status_code == 422 and "send no more" in refusal.json()["problems"][0]["reason"]
    assert sent(bob, upload, 20, CONTENT[20:]).json()["offset"] == len(CONTENT)


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "a\0b", "a\nb", "nul"),
        *("COM1.jsonl", ".hidden", "-rf", "a.", "a ", "C:a", "a\u202egnp.js", "a\ud800", "n" * 201),
        *("~root", "a?b", "a*b", "a|b", "\u200ba", "<a>", "\uff0e\uff0e\uff0fx", "a\uff3cb"),
    ],
)
def test_only_a_plain_name_is_a_name(bob, cast, var_directory, name):
    refusal = begun(bob, cast, name=name)
    assert refusal.status_code in (400, 422) and refusal.json()["detail"]
    assert not Upload.objects.exists() and not files_below(var_directory)


def test_sizes_and_quotas_are_refused_with_a_remedy(bob, cast, settings):
    settings.ARTIFACT_MOST_BYTES = {"dataset": 100, "model": 1000}
    settings.ARTIFACT_QUOTA_BYTES = 150
    for size in (0, -1, 2**63):
        assert begun(bob, cast, size=size).status_code == 422
    large = begun(bob, cast, size=101)
    assert large.status_code == 413 and large.json()["problems"][0]["path"] == "size"
    assert begun(bob, cast, size=90).status_code == 201
    over = begun(bob, cast, size=61)
    assert over.status_code == 413 and "room for 60 bytes" in over.json()["problems"][0]["reason"]
    assert begun(bob, cast, size=60).status_code == 201


def test_a_project_is_charged_once_for_a_content(cast, var_directory):
    for _ in range(2):
        services.finish(an_upload(cast))
    assert bytes_of(cast.project) == len(CONTENT) and Artifact.objects.count() == 1


def test_every_artifact_reference_declares_its_project():
    for key in references():
        assert isinstance(key.model._default_manager.all(), InProjectQuerySet), key
        assert key.remote_field.on_delete.__name__ == "PROTECT", key


def test_only_its_owner_appends_to_an_upload_or_sees_it(bob, client, cast):
    upload = begun(bob, cast).json()["id"]
    client.force_login(cast.alice)
    assert client.get(f"/api/v1/uploads/{upload}").status_code == 404
    assert sent(client, upload, 0, b"x").status_code == 404
    assert client.get("/api/v1/uploads").json()["uploads"] == []


def test_a_token_for_models_uploads_models_only(client, cast, var_directory):
    token = a_token(cast.bob, cast.project, Scope.REGISTRY_WRITE)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    assert begun(client, cast, kind="dataset").status_code == 403
    upload = begun(client, cast, kind="model").json()["id"]
    assert sent(client, upload, 0, CONTENT).status_code == 200


def test_bytes_that_the_disk_lost_are_requested_again(cast, var_directory):
    upload = an_upload(cast)
    services.path_of(upload).write_bytes(CONTENT[:4])
    with pytest.raises(services.OffsetMismatch) as error:
        services.finish(upload)
    assert error.value.offset == 4
    services.append(upload, 4, BytesIO(CONTENT[4:]))
    assert services.finish(upload).artifact_id == hashlib.sha256(CONTENT).hexdigest()


def test_an_expired_upload_is_removed_with_its_bytes(cast, var_directory):
    upload = an_upload(cast)
    Upload.objects.update(expires=timezone.now())
    assert collect().uploads == 1
    assert not files_below(var_directory) and not Upload.objects.filter(pk=upload.pk).exists()


def test_garbage_is_what_nothing_refers_to(cast, var_directory):
    kept = services.finish(an_upload(cast))
    loose = store.put([b"loose"])
    assert collect().artifacts == 0, "what is fresh stays"
    assert collect(AT_ONCE).artifacts == 1
    assert [path.name for path in files_below(var_directory)] == [kept.artifact_id]
    assert not Artifact.objects.filter(pk=loose.pk).exists()
    services.discard(kept)
    assert collect(AT_ONCE).bytes == len(CONTENT) and not files_below(var_directory)


def test_files_without_a_row_are_removed(cast, var_directory):
    store.put([b"stray"])
    Artifact.objects.all().delete()
    an_upload(cast)
    Upload.objects.all().delete()
    assert collect().files == 0, "what is fresh stays"
    assert collect(AT_ONCE).files == 2
    assert not files_below(var_directory)


def test_names_in_the_store_are_digests_only(var_directory):
    for name in ("../x", "A" * 64, "a" * 63, "/etc/passwd"):
        with pytest.raises(ValueError, match="no SHA-256"):
            store.open_artifact(name)


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_appends_one_is_accepted(cast, var_directory):
    upload = services.begin(cast.project, cast.bob, Upload.Kind.DATASET, "a", 2000)
    meet = threading.Barrier(4)

    def add(letter: bytes) -> bool:
        meet.wait(60 * patience())
        try:
            services.append(upload, 0, BytesIO(letter * 1000))
            return True
        except services.OffsetMismatch:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        took = list(pool.map(add, (b"a", b"b", b"c", b"d")))
    assert sum(took) == 1
    assert len(set(services.path_of(upload).read_bytes())) == 1


@pytest.mark.django_db(transaction=True)
def test_an_upload_that_many_finish_at_once_is_one_artifact(cast, var_directory):
    begun_one = services.begin(cast.project, cast.bob, Upload.Kind.DATASET, "a", len(CONTENT))
    upload = services.append(begun_one, 0, BytesIO(CONTENT))
    meet = threading.Barrier(4)

    def finish(_: int) -> str | None:
        meet.wait(60 * patience())
        try:
            return services.finish(upload).artifact_id
        except services.OffsetMismatch:
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        results = set(pool.map(finish, range(4)))
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert digest in results and results <= {digest, None}
    assert Artifact.objects.get().pk == services.finish(upload).artifact_id == digest
    assert [path.name for path in files_below(var_directory)] == [digest]


def test_an_object_put_again_meanwhile_is_not_removed(cast, var_directory):
    artifact = store.put([b"wanted"])
    store.put([b"wanted"])
    assert not store.remove(artifact)
    with store.open_artifact(artifact.pk) as file:
        assert file.read() == b"wanted"


def test_referenced_objects_are_never_removed(cast, var_directory):
    artifact = services.finish(an_upload(cast)).artifact
    assert not store.remove(artifact)
    with pytest.raises(ProtectedError):
        artifact.delete()


@pytest.mark.django_db(transaction=True)
def test_a_late_writer_cannot_refer_to_a_deleted_artifact(cast, var_directory):
    artifact = store.put([b"late"])
    upload = services.begin(cast.project, cast.bob, Upload.Kind.DATASET, "a", 4)
    collect(AT_ONCE)
    with pytest.raises(IntegrityError):
        Upload.objects.filter(pk=upload.pk).update(artifact=artifact)
