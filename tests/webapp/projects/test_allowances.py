"""Tests of quotas on what costs nothing by itself: stored bytes, workspaces, projects, events."""

from io import BytesIO
from pathlib import Path

import pytest
from django.test import Client

from tests.helpers.builders import a_run
from tests.webapp.artifacts.test_uploads import files_below
from webapp.accounts.models import User
from webapp.artifacts import services as uploads
from webapp.artifacts.collecting import collect
from webapp.artifacts.errors import UploadRefused
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import bytes_of
from webapp.experiments.models import Run
from webapp.projects.models import Project, Workspace
from webapp.projects.services import create_project, open_workspace

KIB = 1 << 10


def stored(var_directory: Path) -> int:
    """Bytes of the store."""
    return sum(path.stat().st_size for path in files_below(var_directory / "artifacts"))


def sent(cast, size: int, fill: bytes = b"x", project: Project | None = None) -> Upload:
    """A finished upload."""
    upload = uploads.begin(project or cast.project, cast.bob, Upload.Kind.DATASET, "a.jsonl", size)
    uploads.append(upload, 0, BytesIO(fill * size))
    return uploads.finish(upload)


def test_abandoned_finished_uploads_count_until_they_are_deleted(cast, var_directory, settings):
    """Discarding leaves the bytes to the collector: without the count, 93 KiB of 64 were stored."""
    settings.ARTIFACT_QUOTA_BYTES = 64 * KIB
    uploads.discard(sent(cast, 31 * KIB, b"a"))
    uploads.discard(sent(cast, 31 * KIB, b"b"))
    assert stored(var_directory) == 62 * KIB == bytes_of(cast.project)
    with pytest.raises(UploadRefused, match="room for 2048 bytes more"):
        sent(cast, 31 * KIB, b"c")
    Artifact.objects.update(last_put="2020-01-01T00:00Z")
    collect()
    assert bytes_of(cast.project) == 0 == stored(var_directory)
    sent(cast, 31 * KIB, b"c")


def test_a_deleted_upload_returns_its_quota_and_its_bytes(client, cast, var_directory):
    client.force_login(cast.bob)
    upload = sent(cast, 31 * KIB)
    assert client.delete(f"/api/v1/uploads/{upload.pk}").status_code == 204
    assert stored(var_directory) == 0 == bytes_of(cast.project)


def test_shared_bytes_count_only_in_the_project_that_still_holds_them(cast, var_directory):
    elms = create_project(cast.project.workspace, "Elms", "elms")
    uploads.discard(sent(cast, KIB))
    held = sent(cast, KIB, project=elms)
    assert (bytes_of(cast.project), bytes_of(elms)) == (0, KIB)
    uploads.discard(held)
    assert (bytes_of(cast.project), bytes_of(elms)) == (KIB, KIB)


def test_parts_of_uploads_count_until_they_are_removed(cast, var_directory):
    upload = uploads.begin(cast.project, cast.bob, Upload.Kind.DATASET, "a.jsonl", KIB)
    uploads.append(upload, 0, BytesIO(b"x" * 100))
    Upload.objects.update(expires="2020-01-01T00:00Z")
    assert bytes_of(cast.project) == KIB, "its file lies there until it is collected"
    collect()
    assert bytes_of(cast.project) == 0 and not list((var_directory / "uploads").iterdir())


def refused(answer, status: int, variable: str) -> dict:
    assert answer.status_code == status, answer.content
    (problem,) = answer.json()["problems"]
    assert variable in problem["reason"]
    return problem


def test_one_person_owns_so_many_workspaces(client, cast, settings):
    settings.MOST_WORKSPACES = 2
    client.force_login(cast.bob)
    for index in range(2):
        body = {"name": f"Mine {index}"}
        assert client.post("/api/v1/workspaces", body, "application/json").status_code == 201
    answer = client.post("/api/v1/workspaces", {"name": "More"}, "application/json")
    problem = refused(answer, 409, "GROVE_MOST_WORKSPACES")
    assert (problem["path"], problem["value"]) == ("name", "More")
    assert "you own 2 workspaces of at most 2" in problem["reason"]
    page = client.post("/workspaces/", {"name": "More"})
    assert page.status_code == 422 and b"GROVE_MOST_WORKSPACES" in page.content
    assert Workspace.objects.filter(name="More").count() == 0
    browser = Client()
    browser.force_login(User.objects.create_user("dora"))
    assert Workspace.objects.filter(memberships__user__username="dora").count() == 1


def test_a_workspace_has_so_many_projects(client, cast, settings):
    settings.MOST_PROJECTS = cast.project.workspace.projects.count() + 1
    client.force_login(cast.bob)
    address = f"/api/v1/workspaces/{cast.project.workspace.slug}/projects"
    assert client.post(address, {"name": "One"}, "application/json").status_code == 201
    problem = refused(client.post(address, {"name": "Two"}, "application/json"), 409,
                      "GROVE_MOST_PROJECTS")  # fmt: skip
    assert (problem["path"], problem["value"]) == ("name", "Two")
    form = {"name": "Two", "visibility": "workspace"}
    page = client.post(f"/workspaces/{cast.project.workspace.slug}/projects/", form)
    assert page.status_code == 409 and b"GROVE_MOST_PROJECTS" in page.content
    assert not Project.objects.filter(name="Two").exists()


def line(seq: int) -> dict:
    payload = {"level": "info", "message": "hello"}
    return {"seq": seq, "time": 1.0, "kind": "log.line", "tree": None, "node": None,
            "payload": payload}  # fmt: skip


def test_the_runs_of_a_workspace_hold_so_many_events(client, cast, settings):
    settings.MOST_EVENTS = 10
    other = a_run(cast)
    Run.objects.filter(pk=other.pk).update(head_seq=7)
    client.force_login(cast.bob)
    body = {"project": cast.project.pk, "recipe": "demo", "outside": True}
    run = client.post("/api/v1/runs", body, "application/json").json()["id"]

    def send(first: int, last: int):
        events = {"events": [line(seq) for seq in range(first, last + 1)]}
        return client.post(f"/api/v1/runs/{run}/events", events, "application/json")

    head = Run.objects.get(pk=run).head_seq
    room = 10 - 7 - head
    problem = refused(send(head + 1, head + room + 1), 409, "GROVE_MOST_EVENTS")
    assert (problem["path"], problem["value"]) == ("events", room + 1)
    assert send(head + 1, head + room).status_code == 200
    assert send(head + 1, head + room).status_code == 200, "sent again it is nothing new"
    problem = refused(client.post("/api/v1/runs", body, "application/json"), 409,
                      "GROVE_MOST_EVENTS")  # fmt: skip
    assert problem["path"] == "project" and "10 events" in problem["reason"]
    elsewhere = open_workspace("Elsewhere", cast.bob).projects.get()
    more = {**body, "project": elsewhere.pk}
    assert client.post("/api/v1/runs", more, "application/json").status_code == 201
