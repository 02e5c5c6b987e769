"""Tests that a run is deleted whole, never while something uses it, and that it is said before."""

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, some_events
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.waiting import eventually
from webapp.accounts.models import Scope
from webapp.audit.selectors import AuditQuery, entries
from webapp.comments.models import Comment
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.experiments import services
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Experiment, Run
from webapp.registry.models import Alias, Model, ModelUse, ModelVersion, VersionFile
from webapp.reports.content import shown_page
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import ReportPage
from webapp.reports.services import Draft, create_report
from webapp.retention.errors import DeletionRefused
from webapp.retention.models import DeletedRun
from webapp.retention.plan import plan_of
from webapp.retention.services import delete_run, remove_next_folders
from webapp.sharing.models import ComparisonShare
from webapp.sharing.services import create_share
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event, Metric


def a_full_run(cast, var) -> Run:
    """A finished run with one of everything; two versions, the second derived from the first."""
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 40))
    services.mark_finished(run.pk, fencing)
    folder = var / "runs" / str(run.pk) / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "state").write_bytes(b"x" * 1000)
    model = Model.objects.create(project=cast.project, name="oak")
    fields = {"sha256": "0" * 64, "parameters": 6, "path": str(folder), "run": run, "agent": "oak"}
    first = ModelVersion.objects.create(model=model, number=1, step=1, **fields)
    ModelVersion.objects.create(model=model, number=2, step=2, parent=first, **fields)
    VersionFile.objects.create(version=first, name="weights", size=24, sha256="1" * 64)
    create_share(run, cast.alice, timedelta(days=1))
    ends = timezone.now() + timedelta(days=1)
    other = a_run(cast, RunState.FINISHED)
    ComparisonShare.objects.create(
        runs=[other.pk, run.pk], split="test", digest="c" * 64, expires=ends
    )
    write_comment(Target((run,)), cast.bob, "Look.", "http://testserver")
    write_comment(
        Target(tuple(sorted((run, other), key=lambda one: str(one.pk)))), cast.bob, "!", "http://x"
    )
    annotations.star([run.pk], cast.vera, True)
    began = {"parent": run, "parent_step": 1, "started_at": timezone.now()}
    a_run(cast, RunState.FINISHED, **began)
    return Run.objects.get(pk=run.pk)


def test_all_that_is_deleted_is_said_before_and_nothing_else_is(
    cast, var_directory, django_capture_on_commit_callbacks
):
    run = a_full_run(cast, var_directory)
    plan = plan_of(run)
    assert (plan.events, plan.folder_bytes, plan.version_bytes) == (40, 1000, 24)
    assert plan.versions == ["oak v1", "oak v2"] and not plan.refusals
    assert (plan.comments, plan.shares, plan.stars) == (2, 2, 1)
    fork = Run.objects.get(parent_step=1)
    assert plan.kept == [f"{fork}, started from its checkpoint"]
    assert plan.experiment
    with django_capture_on_commit_callbacks(execute=True):
        delete_run(run)
    assert not (var_directory / "runs" / str(run.pk)).exists()
    assert DeletedRun.objects.get().files_removed_at is not None
    assert Run.objects.count() == Experiment.objects.count() == 2
    for table in (Event, Metric, ModelVersion, Comment, ComparisonShare):
        assert not table.objects.exists(), table
    fork = Run.objects.get(parent_step=1)
    assert fork.parent is None
    texts = [one.text for one in entries(cast.project.workspace, AuditQuery(), None, 50)[0]]
    assert f"Grove deleted the run {run}" in texts


def test_reports_with_figures_of_it_are_said_before_and_stay(
    cast, var_directory, django_capture_on_commit_callbacks
):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, list(sample_events(Sample(steps=1, trees=1, nodes=2))))
    services.mark_finished(run.pk, fencing)
    tree = Event.objects.filter(run=run, kind="tree.open").latest("seq").tree
    other = a_run(cast, RunState.FINISHED)
    blocks = {
        "Both": (
            f"run: {run.pk}\nfrozen: now",
            f"run: https://g.example/runs/{str(run.pk).upper()}/",
        ),
        "Live": (f"run: {run.pk}",),
        "Words": (f"run: {other.pk}\ntitle: after {run.pk}",),
    }
    for title, lines in blocks.items():
        text = "\n".join(f"```grove tree\n{one}\ntree: {tree}\n```\n" for one in lines)
        create_report(cast.project, cast.bob, Draft(title, text, "http://testserver"))
    run = Run.objects.get(pk=run.pk)
    assert plan_of(run).kept == [
        "frozen figures of it in Both",
        "Both, Live, whose live figures of it then show an error",
    ]
    with django_capture_on_commit_callbacks(execute=True):
        delete_run(run)
    both = ReportPage.objects.get(title="Both")
    frozen, live = shown_page(both, Reader(cast.bob, cast.project)).figures
    assert frozen.drawing is not None and "no such run" in live.problems[0]["remedy"]


def refused(run: Run) -> str:
    with pytest.raises(DeletionRefused) as refusal:
        delete_run(run)
    assert Run.objects.filter(pk=run.pk).exists() and not DeletedRun.objects.exists()
    return str(refusal.value)


def test_a_run_in_use_is_refused_by_name(cast, var_directory):
    assert "it is running: stop it first" in refused(a_run(cast, RunState.RUNNING))
    run = a_full_run(cast, var_directory)
    second = ModelVersion.objects.get(number=2)
    alias = Alias.objects.create(model=second.model, name="champion", version=second)
    assert "oak v2 is in use (alias: champion)" in refused(run)
    alias.delete()
    user = a_run(cast, RunState.FINISHED)
    use = ModelUse.objects.create(run=user, agent="oak", version=second)
    assert f"run started from it: {user}" in refused(run)
    use.delete()
    fork = a_run(cast, RunState.QUEUED, parent=run, parent_step=2)
    assert f"{fork} starts from its checkpoint" in refused(run)
    Run.objects.filter(pk=fork.pk).update(state=RunState.STOPPED)
    assert f"{fork} starts from its checkpoint" in refused(run), "it may be resumed"
    fork.delete()
    delete_run(run)


def test_a_folder_that_a_killed_process_left_is_removed_by_a_worker(cast, var_directory):
    """The callbacks after the commit never run here, as if the process was killed then."""
    run = a_full_run(cast, var_directory)
    delete_run(run)
    folder = var_directory / "runs" / str(run.pk)
    assert folder.exists() and DeletedRun.objects.get().files_removed_at is None
    assert remove_next_folders() == 1
    assert not folder.exists() and DeletedRun.objects.get().files_removed_at is not None
    assert remove_next_folders() == 0


@pytest.mark.large
@pytest.mark.django_db(transaction=True)
def test_a_deletion_that_is_killed_halfway_deletes_nothing(django_db_setup, tmp_path, settings):
    """A lock of the test on a model's last version blocks it in the middle; then its connection is
    terminated, as the system does for a killed process."""
    settings.RUNS_DIR = tmp_path / "runs"
    cast = a_cast()
    run = a_full_run(cast, tmp_path)
    versions = ModelVersion.objects.filter(run=run)
    pids, errors = [], []

    def delete() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
            delete_run(run)
        except OperationalError as error:
            errors.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        list(versions.select_for_update())
        thread = threading.Thread(target=delete)
        thread.start()

        def blocked() -> bool:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ANY(%s)", [pids]
                )
                return cursor.fetchone()[0] > 0

        eventually(blocked, "the deletion to block")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", pids)
        thread.join(20)
    assert errors and not thread.is_alive()
    assert Event.objects.filter(run=run).count() == 40 and versions.count() == 2
    assert Comment.objects.count() == 2 and not DeletedRun.objects.exists()
    assert (tmp_path / "runs" / str(run.pk) / "checkpoints" / "state").exists()


def test_by_page_and_by_rest_managers_delete_it_and_members_do_not(client, cast, var_directory):
    run, other = (a_run(cast, RunState.FINISHED) for _ in range(2))
    client.force_login(cast.bob)
    assert b"delete/" not in client.get(f"/runs/{run.pk}/").content
    assert client.post(f"/runs/{run.pk}/delete/").status_code == 403
    client.force_login(cast.mia)
    assert f"/runs/{run.pk}/delete/".encode() in client.get(f"/runs/{run.pk}/").content
    assert b"Delete run" in client.get(f"/runs/{run.pk}/delete/").content
    assert b"is deleted" in client.post(f"/runs/{run.pk}/delete/", follow=True).content
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    token = a_token(cast.alice, cast.project.workspace, Scope.RUNS_WRITE)
    headers = {"authorization": f"Bearer {token}"}
    address = f"/api/v1/runs/{other.pk}"
    plan = client.get(f"{address}/deletion", headers=headers).json()
    assert plan["experiment"] and plan["refusals"] == []
    assert client.delete(address, headers=headers).status_code == 204
    assert client.delete(address, headers=headers).status_code == 404
