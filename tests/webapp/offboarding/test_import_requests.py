"""Tests of imports of uploaded zips: who may request one, what a worker does, what is left."""

import json
import uuid
from io import BytesIO

import pytest

from engine.config.problems import ProblemsConfig
from tests.helpers.builders import a_search, a_token
from tests.helpers.datasets import stored_version
from tests.helpers.workspace_zips import (
    a_checked_import,
    a_zip_upload,
    changed,
    damaged_files,
    exported,
    with_field,
)
from tests.webapp.offboarding.test_imports import rows_now, small
from webapp.accounts.models import ApiToken, Scope
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.services import append, begin
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.services import version_of
from webapp.errors import Refused
from webapp.experiments.models import Run
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import states
from webapp.offboarding.imports.checking import PHASES, check
from webapp.offboarding.imports.requests import MOST_OPEN, request_import
from webapp.offboarding.imports.services import import_workspace
from webapp.offboarding.models import ImportRequest, WorkspaceImport
from webapp.offboarding.services import refusal
from webapp.projects import membership
from webapp.projects.models import Role, Workspace
from webapp.queued_imports import ImportLost
from workers.jobs import workspace_import_process as process

__all__ = ["small"]
AT = "/api/v1/workspace-imports"


@pytest.fixture
def zip_of(cast, small, tmp_path):
    return exported(cast, tmp_path / "x.zip")


def post(client, body, path=AT, **headers):
    return client.post(path, body, "application/json", headers=headers)


def attempt(capsys):
    """Takes the import and does it as a worker's process; returns it, the exit status and the
    lines of its output."""
    one = states.take()
    status = process.main(one.pk, one.fencing)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if status == process.EXIT_REFUSED:
        states.fail(one, lines[-1]["error"], is_final=lines[-1]["is_final"])
    one.refresh_from_db()
    return one, status, lines


def test_a_zip_is_uploaded_and_becomes_a_workspace_of_ones_own(
    cast, zip_of, client, capsys, django_capture_on_commit_callbacks
):
    client.force_login(cast.charlie)
    data = zip_of.read_bytes()
    announced = {"kind": "workspace", "name": "trees.zip", "size": len(data)}
    upload = post(client, announced, "/api/v1/uploads").json()
    assert upload["project"] is None
    at = f"/api/v1/uploads/{upload['id']}"
    sent = client.patch(at, data, "application/octet-stream", headers={"Upload-Offset": "0"})
    assert sent.status_code == 200 and post(client, {}, f"{at}/finish").status_code == 200
    queued = post(client, {"upload": upload["id"], "name": "Copy"})
    assert queued.status_code == 202 and queued.json()["state"] == "queued"
    at = f"{AT}/{queued.json()['id']}"
    assert post(client, {}, f"{at}/confirm").status_code == 409, "it is not checked yet"
    before = rows_now()
    _, status, lines = attempt(capsys)
    assert status == 0 and len(lines) == PHASES
    checked = client.get(at).json()
    assert (checked["state"], checked["can_confirm"], checked["workspace"]) == (
        "checked",
        True,
        None,
    )
    included = {one["what"]: one["count"] for one in checked["check"]["included"]}
    assert included == {
        "projects": 1, "experiments": 1, "runs": 1, "events of runs": 5, "comments": 1,
    }  # fmt: skip
    left_out = {one["what"]: one["count"] for one in checked["check"]["left_out"]}
    assert left_out["members"] == 4 and left_out["accounts of people"] == 4
    assert left_out["tokens, links, invitations, alerts and policies"] is None
    assert rows_now() == before and states.take() is None, "it waits for its user"
    assert post(client, {}, f"{at}/confirm").status_code == 202
    with django_capture_on_commit_callbacks(execute=True):
        _, status, lines = attempt(capsys)
    assert status == 0
    shares = [line["progress"] for line in lines]
    assert shares == sorted(shares) and lines[-1]["phase"] == "Creating reports" and shares[-1] < 1
    done = client.get(at).json()
    assert (done["state"], done["progress"], done["error"]) == ("done", 1.0, "")
    assert client.get(f"/workspaces/{done['workspace']}/").status_code == 200
    run = Run.objects.get(experiment__project__workspace__slug=done["workspace"])
    assert run.created_by == cast.charlie and run.head_seq == 5
    assert Workspace.objects.get(slug=done["workspace"]).name == "Copy"
    assert not (Upload.objects.exists() or Artifact.objects.exists())


def test_a_request_is_refused_by_field_and_changes_nothing(cast, zip_of, client):
    client.force_login(cast.alice)
    whole = a_zip_upload(cast.alice, zip_of.read_bytes())
    part = begin(None, cast.alice, Upload.Kind.WORKSPACE, "part.zip", 10)
    part = append(part, 0, BytesIO(b"PK"))
    other = a_zip_upload(cast.bob, b"PK of Bob")
    slug = cast.project.workspace.slug
    for body, status, reason in (
        ({"upload": str(part.pk)}, 409, "finish it first"),
        ({"upload": str(other.pk)}, 409, "you have no such upload"),
        ({"upload": str(whole.pk), "into": slug, "name": "X"}, 422, "leave it out"),
        ({"upload": str(whole.pk), "into": "elsewhere"}, 404, ""),
    ):
        refused = post(client, body)
        assert refused.status_code == status and reason in refused.content.decode(), body
    assert not ImportRequest.objects.exists()
    assert post(client, {"upload": str(whole.pk), "into": slug}).status_code == 202
    again = post(client, {"upload": str(whole.pk)})
    assert again.status_code == 409 and "is being imported" in again.content.decode()
    for number in range(1, MOST_OPEN):
        request_import(a_zip_upload(cast.alice, b"PK %d" % number), cast.alice)
    last = a_zip_upload(cast.alice, b"PK last")
    assert "are pending" in post(client, {"upload": str(last.pk)}).content.decode()
    client.force_login(cast.mia)
    mine = a_zip_upload(cast.mia, b"PK of Mia")
    assert post(client, {"upload": str(mine.pk), "into": slug}).status_code == 403
    for project, kind in ((None, "dataset"), (cast.project.pk, "workspace")):
        wrong = {"project": project, "kind": kind, "name": "a.zip", "size": 3}
        assert post(client, wrong, "/api/v1/uploads").json()["problems"][0]["path"] == "project"


def test_a_token_imports_into_the_workspace_that_it_is_bound_to(cast, zip_of, client):
    workspace = cast.project.workspace
    upload = a_zip_upload(cast.alice, zip_of.read_bytes())
    admin, reader = (
        {"authorization": f"Bearer {a_token(cast.alice, workspace, scope)}"}
        for scope in (Scope.ADMIN, Scope.DATASETS_WRITE)
    )
    at = f"/api/v1/uploads/{upload.pk}"
    assert client.get(at, headers=reader).status_code == 404
    assert client.get(at, headers=admin).status_code == 200
    body = {"upload": str(upload.pk)}
    assert post(client, body, **admin).status_code == 403, "a new workspace is a person's"
    made = post(client, {**body, "into": workspace.slug}, **admin)
    assert made.status_code == 202 and client.get(AT, headers=admin).json()["imports"]
    client.force_login(cast.alice)
    own = request_import(a_zip_upload(cast.alice, b"PK own"), cast.alice)
    assert client.get(f"{AT}/{own.pk}").status_code == 200
    assert client.get(f"{AT}/{own.pk}", headers=admin).status_code == 404


def test_zips_of_one_person_have_a_limit(cast, var_directory, client, settings):
    settings.ARTIFACT_MOST_BYTES = {**settings.ARTIFACT_MOST_BYTES, "workspace": 100}
    client.force_login(cast.alice)
    body = {"kind": "workspace", "name": "a.zip", "size": 60}
    assert post(client, body, "/api/v1/uploads").status_code == 201
    refused = post(client, body, "/api/v1/uploads")
    assert refused.status_code == 413 and "GROVE_WORKSPACE_ZIP_MIB" in refused.content.decode()
    assert Upload.objects.count() == 1
    client.force_login(cast.bob)
    assert post(client, body, "/api/v1/uploads").status_code == 201


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_damaged_file_is_named_and_nothing_of_it_is_left(
    cast, small, zip_of, capsys, django_capture_on_commit_callbacks
):
    files = damaged_files(zip_of, small.pk)
    for reason in ("is no zip, or not a whole one", "would unpack to", "it was changed"):
        request_import(a_zip_upload(cast.charlie, files[reason]), cast.charlie, is_confirmed=True)
        with django_capture_on_commit_callbacks(execute=True):
            one, status, _ = attempt(capsys)
        assert status == process.EXIT_REFUSED and one.state == "failed"
        assert reason in one.error and not one.can_retry
        with pytest.raises(ImportRefused, match="upload it again"):
            states.retry(one)
    assert not (Upload.objects.exists() or Artifact.objects.exists())
    assert not WorkspaceImport.objects.exists() and Workspace.objects.count() == 2


def test_an_export_that_is_there_already_is_refused_until_it_is_not(cast, zip_of, capsys):
    data = zip_of.read_bytes()
    request_import(a_zip_upload(cast.alice, data), cast.alice, name="One", is_confirmed=True)
    first, status, _ = attempt(capsys)
    assert status == 0 and first.summary["source"] == "Trees"
    request_import(a_zip_upload(cast.alice, data), cast.alice, is_confirmed=True)
    second, status, _ = attempt(capsys)
    assert status == process.EXIT_REFUSED and "into One" in second.error and second.can_retry
    WorkspaceImport.objects.all().delete()
    states.retry(second)
    second, status, _ = attempt(capsys)
    assert status == 0 and second.result.workspace != first.into


def test_a_worker_or_owner_that_lost_an_import_creates_nothing(cast, zip_of, capsys, client):
    workspace = cast.project.workspace
    membership.change_role(workspace, cast.mia.pk, Role.OWNER, cast.alice)
    request_import(a_zip_upload(cast.mia, zip_of.read_bytes()), cast.mia, workspace)
    assert "is being imported into it" in refusal(workspace)
    taken = states.take()
    membership.change_role(workspace, cast.mia.pk, Role.MAINTAINER, cast.alice)
    taken.refresh_from_db()
    assert taken.state == "cancelled" and "mia may no longer import into Trees" in taken.error
    assert process.main(taken.pk, taken.fencing) == process.EXIT_LOST
    with pytest.raises(ImportLost):
        states.fail(taken, "late")
    assert not WorkspaceImport.objects.exists() and Run.objects.count() == 1
    client.force_login(cast.mia)
    assert post(client, {}, f"{AT}/{taken.pk}/retry").status_code == 403


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_check_names_each_fault_before_anything_is_stored(cast, small, zip_of, tmp_path):
    """Only what the database alone can refuse is left to the import."""
    before = rows_now()
    files = damaged_files(zip_of, small.pk)
    del files["rows contradict each other"]
    for reason, data in files.items():
        damaged = tmp_path / "damaged.zip"
        damaged.write_bytes(data)
        with pytest.raises(ImportRefused, match=reason):
            check(damaged, cast.charlie, None, "")
    assert rows_now() == before and not Artifact.objects.exists()


def test_the_check_refuses_what_the_limits_of_the_server_leave_no_room_for(cast, zip_of, settings):
    settings.MOST_WORKSPACES = 1
    with pytest.raises(Refused, match="GROVE_MOST_WORKSPACES"):
        check(zip_of, cast.charlie, None, "")
    theirs = cast.charlie.memberships.get().workspace
    settings.MOST_PROJECTS = theirs.projects.count()
    with pytest.raises(Refused, match="GROVE_MOST_PROJECTS"):
        check(zip_of, cast.charlie, theirs, "")
    settings.MOST_PROJECTS, settings.MOST_EVENTS = 100, 4
    with pytest.raises(Refused, match="GROVE_MOST_EVENTS"):
        check(zip_of, cast.charlie, theirs, "")


def test_what_a_summary_says_of_objects_that_arrive_changed(cast, small, zip_of, tmp_path):
    version_of(cast.project, ProblemsConfig(train=5, validation=0, test=3))
    a_search(cast)
    write_comment(Target((small, Run.objects.exclude(pk=small.pk).first())), cast.bob, "both", "")
    exported(cast, zip_of)
    elsewhere = f"{small.pk},{uuid.uuid4()}"
    changes = {
        "datasets.jsonl": with_field("spec", {"dataset": "/etc/passwd"}),
        "comments.jsonl": with_field("comparison", elsewhere),
        "missing.jsonl": b'{"name": "models/1/a.safetensors", "reason": "gone"}\n',
        "tokens.jsonl": b'{"secret": "theirs"}\n',
    }
    zip_of.write_bytes(changed(zip_of, changes))
    summary = check(zip_of, cast.charlie, None, "")
    notes = {one.what: one.note for one in summary.included}
    assert notes["runs"] == "1 was active when it was exported and arrives as stopped"
    assert "this server's operator may list" in notes["dataset versions"]
    assert notes["comments"].startswith("2 are about runs of other workspaces")
    left_out = {one.what: one for one in summary.left_out}
    assert "models/1/a.safetensors" in left_out["files"].reason
    assert left_out["tables"].count == 1 and "tokens.jsonl" in left_out["tables"].reason
    made = import_workspace(zip_of, cast.charlie)
    spec = made.workspace.projects.get().datasets.get().versions.get().spec
    assert spec["dataset"] == "local:passwd", "no file of this server is read"
    assert not ApiToken.objects.exists()


def test_a_file_of_another_workspace_is_not_reached_by_its_digest(cast, zip_of, var_directory):
    """The rows of a hostile zip name an artifact and a run that are here, of somebody else."""
    theirs = stored_version(cast)
    row = {
        "id": 7, "dataset_id": 7, "dataset__name": "stolen", "dataset__project": cast.project.pk,
        "number": 1, "spec": theirs.spec, "content_hash": theirs.content_hash, "left_out": [],
        "created": "2026-01-01T00:00:00Z", "created_by_id": None, "note": "", "parent_id": None,
        "artifact_id": theirs.artifact_id, "faulty": 0,
    }  # fmt: skip
    zip_of.write_bytes(changed(zip_of, {"datasets.jsonl": json.dumps(row).encode() + b"\n"}))
    summary = check(zip_of, cast.charlie, None, "")
    (versions,) = [one for one in summary.included if one.what == "dataset versions"]
    assert versions.note == "1 arrives without its problems, which were lost"
    made = import_workspace(zip_of, cast.charlie)
    version = made.workspace.projects.get().datasets.get().versions.get()
    assert version.artifact is None and not version.problems.exists()


def test_a_checked_file_is_kept_for_a_day_and_its_owner_may_cancel(cast, var_directory, client):
    one = a_checked_import(cast)
    assert not refusal(cast.project.workspace).startswith("A workspace is being imported")
    Upload.objects.all().delete()
    client.force_login(cast.alice)
    answer = post(client, {}, f"{AT}/{one.pk}/confirm")
    assert answer.status_code == 409 and "upload it again" in answer.content.decode()
    page = client.get("/workspace-imports/").content.decode()
    assert "a day after its check" in page
    other = a_checked_import(cast)
    assert post(client, {}, f"{AT}/{other.pk}/cancel").json()["state"] == "cancelled"
    membership.change_role(cast.project.workspace, cast.mia.pk, Role.OWNER, cast.alice)
    third = a_checked_import(cast)
    membership.change_role(cast.project.workspace, cast.alice.pk, Role.MEMBER, cast.mia)
    third.refresh_from_db()
    assert third.state == "cancelled" and "alice may no longer import" in third.error
