"""Tests that a workspace is exported whole, and deleted with its contents: no earlier, no less."""

import io
import json
import zipfile
from datetime import timedelta

import httpx
import pytest
from django.apps import apps
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, an_event, some_events
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import ApiToken, Scope
from webapp.artifacts.models import Artifact
from webapp.artifacts.store import open_artifact, put
from webapp.audit.models import WorkspaceEvent
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments import services
from webapp.experiments.annotations import annotations
from webapp.offboarding.errors import CloseRefused
from webapp.offboarding.export import export
from webapp.offboarding.services import delete_workspace, refusal
from webapp.projects.membership import invite
from webapp.projects.models import Invitation, Role, Workspace
from webapp.registry.models import Alias, Model, ModelUse, ModelVersion, VersionFile
from webapp.reports import sharing as report_links
from webapp.reports.models import ReportShare
from webapp.reports.services import Draft, create_report
from webapp.sharing.models import ComparisonShare, Share
from webapp.sharing.services import create_share
from webapp.telemetry.ingest.ingest import ingest

WEIGHTS, PROBLEMS = b"weights of an oak", b'{"id": "one"}\n'


@pytest.fixture
def full(cast, var_directory, settings):
    """The cast's workspace with one object of every kind; returns its finished run."""
    return _fill(cast, var_directory)


def _fill(cast, var):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 40))
    services.mark_finished(run.pk, fencing)
    folder = var / "runs" / str(run.pk)
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("{}")
    weights, problems = (put([content]) for content in (WEIGHTS, PROBLEMS))
    project = cast.project
    dataset = Dataset.objects.create(project=project, name="ours")
    stored = {"spec": {}, "artifact": problems}
    first = DatasetVersion.objects.create(dataset=dataset, number=1, content_hash="a", **stored)
    second = DatasetVersion.objects.create(
        dataset=dataset, number=2, content_hash="b", parent=first, **stored
    )
    run.dataset_version = second
    run.save(update_fields=["dataset_version"])
    model = Model.objects.create(project=project, name="oak")
    fields = {"sha256": "0" * 64, "parameters": 6, "path": str(var / "models" / "x")}
    old = ModelVersion.objects.create(model=model, number=1, **fields)
    new = ModelVersion.objects.create(
        model=model, number=2, run=run, parent=old, dataset_version=second, **fields
    )
    VersionFile.objects.create(
        version=new,
        name="model.safetensors",
        size=len(WEIGHTS),
        sha256=weights.pk,
        artifact=weights,
    )
    VersionFile.objects.create(version=old, name="gone.safetensors", size=1, sha256="1" * 64)
    Alias.objects.create(model=model, name="champion", version=new)
    ModelUse.objects.create(run=run, agent="oak", version=old)
    create_share(run, cast.alice, timedelta(days=1))
    ends = timezone.now() + timedelta(days=1)
    ComparisonShare.objects.create(runs=[run.pk], split="test", digest="c" * 64, expires=ends)
    a_token(cast.alice, project, Scope.ADMIN)
    invite(project.workspace, cast.alice, Role.VIEWER, single_use=True)
    write_comment(Target((run,)), cast.bob, "@mia look", "http://testserver")
    annotations.star([run.pk], cast.vera, True)
    figure = f"```grove runs\nrun: {run.pk}\nfrozen: end\n```\n"
    page = create_report(project, cast.bob, Draft("Trees", figure, "http://testserver"))
    report_links.share(page, cast.alice, timedelta(days=1), frozen=True)
    return run


def exported(cast) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(export(cast.project.workspace, cast.alice))))


def lines(found: zipfile.ZipFile, name: str) -> list:
    return [json.loads(line) for line in found.read(name).splitlines()]


def test_an_export_holds_everything_and_no_secret(cast, full):
    result = exported(cast)
    assert result.testzip() is None
    (run,) = lines(result, "runs.jsonl")
    assert run["id"] == str(full.pk) and run["config"] == full.config
    assert not {"lease_owner", "engine_pid", "traceparent"} & run.keys()
    assert [one[0] for one in lines(result, f"runs/{full.pk}/events.ndjson")] == list(range(1, 41))
    (version,) = [one for one in lines(result, "models.jsonl") if one["number"] == 2]
    assert result.read(f"models/{version['id']}/model.safetensors") == WEIGHTS
    stored = lines(result, "datasets.jsonl")
    assert [result.read(f"datasets/{one['id']}/problems") for one in stored] == [PROBLEMS] * 2
    assert [one["name"] for one in lines(result, "aliases.jsonl")] == ["champion"]
    (missing,) = lines(result, "missing.jsonl")
    assert missing["name"].endswith("gone.safetensors")
    assert {one["name"] for one in lines(result, "members.jsonl")} == {
        "alice",
        "mia",
        "bob",
        "vera",
    }
    assert [one["text"] for one in lines(result, "comments.jsonl")] == ["@mia look"]
    (report,) = lines(result, "reports.jsonl")
    (version,) = lines(result, "report_versions.jsonl")
    (figure,) = lines(result, "frozen_figures.jsonl")
    assert (report["title"], report["text"]) == ("Trees", version["text"])
    assert version["frozen"] == [figure["key"]] and str(full) in str(figure["data"])
    assert any("created the project" in one["text"] for one in lines(result, "audit.jsonl"))
    whole = b"".join(result.read(name) for name in result.namelist())
    for table in (ApiToken, Share, Invitation, ReportShare):
        assert table.objects.get().digest.encode() not in whole
    assert str(full.project.workspace) == lines(result, "workspace.json")[0]["name"]


def test_metrics_are_exported_point_by_point(cast, var_directory):
    run, fencing = a_held_run(cast)
    samples = [
        an_event(seq, "system.sample", cpu_percent=float(seq), memory_mb=1.0)
        for seq in range(1, 71)
    ]
    ingest(run.pk, fencing, samples)
    result = lines(exported(cast), f"runs/{run.pk}/metrics.jsonl")
    values = [
        value for one in result if one["name"] == "system.cpu_percent" for value in one["value"]
    ]
    assert values == [float(seq) for seq in range(1, 71)]


def test_deletion_removes_everything_and_nothing_of_others(
    cast, full, var_directory, django_capture_on_commit_callbacks
):
    workspace, others = cast.project.workspace, Workspace.objects.get(name="Elsewhere")
    shared = put([b"shared with another workspace"])
    there = others.projects.create(name="There", slug="there")
    theirs = Dataset.objects.create(project=there, name="theirs")
    DatasetVersion.objects.create(
        dataset=theirs, number=1, content_hash="c", spec={}, artifact=shared
    )
    DatasetVersion.objects.filter(content_hash="a").update(artifact=shared)
    assert "no export" in refusal(workspace)
    exported(cast)
    with django_capture_on_commit_callbacks(execute=True):
        delete_workspace(workspace, "Trees")
    left = {
        model._meta.label: model._base_manager.count()
        for model in apps.get_models()
        if model._meta.app_label not in ("accounts", "sessions", "contenttypes", "auth", "audit")
        and not model._meta.proxy
        and model._meta.managed
        and model._base_manager.exists()
    }
    assert left == {
        "projects.Workspace": 1,
        "projects.Membership": 1,
        "projects.Project": 1,
        "datasets.Dataset": 1,
        "datasets.DatasetVersion": 1,
        "artifacts.Artifact": 1,
    }
    assert open_artifact(shared.pk).read() == b"shared with another workspace"
    assert not list((var_directory / "runs").iterdir())
    assert not Artifact.objects.exclude(pk=shared.pk).exists()
    noted = {
        table._meta.label: table.objects.count()
        for table in apps.get_app_config("audit").get_models()
        if not table._meta.proxy
    }
    removed = WorkspaceEvent.objects.get(pgh_label="gone")
    assert removed.name == "Trees"
    assert {name: count for name, count in noted.items() if count} == {
        "audit.WorkspaceEvent": 2,
        "audit.MembershipEvent": 1,
        "audit.ProjectEvent": 1,
        "audit.DatasetEvent": 1,
    }


CHANGES = {
    "a note on a run": lambda cast, run: annotations.describe(run.pk, notes="later"),
    "a new member": lambda cast, run: cast.project.workspace.memberships.create(
        user=cast.charlie, role=Role.VIEWER
    ),
    "another run": lambda cast, run: a_run(cast, RunState.STOPPED),
    "a comment": lambda cast, run: write_comment(Target((run,)), cast.mia, "late", "http://x"),
    "a report": lambda cast, run: create_report(
        cast.project, cast.mia, Draft("Late", "", "http://x")
    ),
    "a dataset": lambda cast, run: Dataset.objects.get().versions.create(
        number=3, content_hash="d", spec={}
    ),
}


def test_after_any_change_the_export_must_be_made_again(cast, full):
    exported(cast)
    assert refusal(cast.project.workspace) == ""
    for what, change in CHANGES.items():
        change(cast, full)
        assert "no export" in refusal(cast.project.workspace), what
        exported(cast)
        assert refusal(cast.project.workspace) == "", what


def test_nothing_is_deleted_while_a_run_is_at_work_or_under_a_wrong_name(cast, full):
    run = a_run(cast, RunState.RUNNING)
    exported(cast)
    with pytest.raises(CloseRefused, match="1 of its runs is active"):
        delete_workspace(cast.project.workspace, "Trees")
    run.delete()
    exported(cast)
    with pytest.raises(CloseRefused, match="the name of the workspace: Trees"):
        delete_workspace(cast.project.workspace, "trees")
    half = export(cast.project.workspace, cast.alice)
    annotations.describe(full.pk, notes="later")
    next(half)
    half.close()
    assert "no export" in refusal(cast.project.workspace), "it broke off"


def test_an_owner_does_it_in_the_browser(client, cast, full):
    client.force_login(cast.alice)
    address = f"/workspaces/{cast.project.workspace.slug}/close/"
    assert b"There is no export" in client.get(address).content
    wrong = client.post(address, {"name": "Trees"})
    assert wrong.status_code == 422 and b"There is no export" in wrong.content
    exported(cast)
    assert client.get(address).context["refusal"] == ""
    response = client.post(address, {"name": "Trees"}, follow=True)
    assert b"Trees is deleted" in response.content and not Workspace.objects.filter(name="Trees")


@pytest.mark.django_db(transaction=True)
def test_over_the_real_server_a_program_exports_and_a_person_deletes(
    django_db_setup, client, tmp_path, settings
):
    settings.RUNS_DIR = tmp_path / "runs"
    cast = a_cast()
    _fill(cast, tmp_path)
    slug = cast.project.workspace.slug
    bearer = {"Authorization": f"Bearer {a_token(cast.alice, cast.project.workspace, Scope.ADMIN)}"}
    client.force_login(cast.alice)
    deletion = {"path": f"/api/v1/workspaces/{slug}/delete", "content_type": "application/json"}
    assert client.post(data={"name": "Trees"}, **deletion).status_code == 409
    with a_server() as served:
        address = f"http://127.0.0.1:{served.port}/api/v1/workspaces/{slug}"
        sent = httpx.get(f"{address}/export", headers=bearer, timeout=30 * patience())
        refused = httpx.post(f"{address}/delete", headers=bearer, json={"name": "Trees"})
        served.wait_until_idle()
    assert zipfile.ZipFile(io.BytesIO(sent.content)).testzip() is None
    assert sent.headers["content-type"] == "application/zip" and refused.status_code == 403
    assert client.post(data={"name": "Trees"}, **deletion).status_code == 204
    assert client.get(f"/workspaces/{slug}/").status_code == 404
