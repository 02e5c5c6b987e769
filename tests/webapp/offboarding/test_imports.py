"""Tests that an exported workspace is imported whole, the same, once, or not at all."""

import hashlib
import uuid

import pytest
from django.core.management import call_command
from django.db import connection

from engine.config.problems import ProblemsConfig
from engine.events.vocabulary import RunState
from tests.helpers.builders import (
    a_held_run,
    a_model_folder,
    a_run,
    a_search,
    an_event,
    some_events,
)
from tests.helpers.datasets import stored_version
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.workspace_zips import damaged_files, exported
from webapp.artifacts.store import open_artifact
from webapp.comments.models import Comment
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.models import DatasetProblem, DatasetVersion
from webapp.datasets.services import version_of
from webapp.experiments import services, tracked_runs
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.states import ENDED
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports.services import import_workspace
from webapp.offboarding.models import WorkspaceImport
from webapp.projects.models import Workspace
from webapp.registry.model_files.imports import import_folder
from webapp.registry.models import Alias, Evaluation, Model, ModelUse, ModelVersion, Promotion
from webapp.reports.models import FrozenFigure, ReportPage
from webapp.reports.services import Draft, create_report
from webapp.searches.models import Search
from webapp.telemetry.ingest import rows as wire
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Block, Chunk, Event, LoggedName

SAMPLE = Sample(seed=3, steps=2, trees=2, nodes=3)


@pytest.fixture
def full(cast, var_directory, tmp_path):
    """A workspace with objects of every kind, of several people; returns its trained run."""
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, list(sample_events(SAMPLE)))
    services.mark_finished(run.pk, fencing)
    annotations.describe(run.pk, tags=["best"], notes="*good*")
    write_comment(Target((run,)), cast.bob, "look here", "http://testserver")
    failed, fencing = a_held_run(cast)
    ingest(failed.pk, fencing, some_events(1, 3))
    services.mark_failed(failed.pk, fencing, "the disk is full")
    process = tracked_runs.Process(uuid.uuid4(), "laptop", 2)
    tracked = tracked_runs.attach(
        cast.project, cast.mia, "theirs", tracked_runs.Resume.ALLOW, process
    ).run
    said = [
        an_event(1, "run.described", config={"lr": 0.1}, summary={"best": 2.5}),
        an_event(2, "metric.logged", step=1, numbers={"loss": 0.5}, texts={"note": "hello"}),
    ]
    ingest(tracked.pk, tracked.fencing, said)
    services.mark_finished(tracked.pk, tracked.fencing)
    tree = Event.objects.filter(run=run, kind="tree.open").latest("seq").tree
    text = f"```grove tree\nrun: {run.pk}\ntree: {tree}\nfrozen: end\n```\n"
    create_report(cast.project, cast.bob, Draft("What we saw", text, "http://testserver"))
    a_search(cast)
    problems = stored_version(cast, faulty=1)
    problems.problems.filter(number=2).update(check_state="failed", check_reason="expected 1")
    version_of(cast.project, ProblemsConfig(dataset="generated", train=5, validation=0, test=3))
    _fill_registry(cast, run, problems, tmp_path)
    run.dataset_version = problems
    run.save(update_fields=["dataset_version"])
    return run


def _fill_registry(cast, run, problems, tmp_path):
    old = import_folder(cast.project, "oak", a_model_folder(tmp_path / "one"))
    new = import_folder(cast.project, "oak", a_model_folder(tmp_path / "two", shards=2, seed=1))
    lineage = {"parent": old, "run": run, "agent": "oak", "step": 2, "dataset_version": problems}
    ModelVersion.objects.filter(pk=new.pk).update(**lineage, notes="new", created_by=cast.bob)
    ModelUse.objects.create(run=run, agent="oak", version=old)
    Alias.objects.create(model=new.model, name="champion", version=new)
    for state in ("done", "waiting"):
        Promotion.objects.create(
            model=new.model, alias="champion", version=new, number=2, reason="better",
            state=state, asked_by=cast.mia,
        )  # fmt: skip
    figures = {"pass@1": {"value": 0.1 + 0.2, "standard_error": None, "problems": 3}}
    Evaluation.objects.create(
        version=new, dataset_version=problems, run=a_run(cast, RunState.FINISHED),
        figures=figures, outcomes={"contents": ["a"], "outcomes": {"pass@1": [1.0]}},
    )  # fmt: skip


def events_of(run):
    columns = ("seq", "time", "kind", "tree", "node", "payload")
    return list(Event.objects.filter(run=run).order_by("seq").values_list(*columns))


def series_of(run):
    columns = ("metric__name", "index", "seq", "step", "tokens", "nodes", "value")
    blocks = Block.objects.filter(metric__run=run).order_by("metric__name", "index")
    chunks = Chunk.objects.filter(metric__run=run).order_by("metric__name", "level", "index")
    summaries = chunks.values_list("metric__name", "level", "index", "least", "most", "total")
    logged = LoggedName.objects.filter(run=run).order_by("name").values_list("kind", "name")
    return list(blocks.values_list(*columns)), list(summaries), list(logged)


def seconds_of(run):
    blocks = Block.objects.filter(metric__run=run).order_by("metric__name", "index")
    return [second for row in blocks.values_list("time", flat=True) for second in row]


@pytest.mark.large
def test_an_import_is_the_same_workspace_under_new_ids(cast, full, tmp_path, client):
    before = Workspace.objects.count()
    made = import_workspace(exported(cast, tmp_path / "x.zip"), cast.alice, known_people=True)
    assert Workspace.objects.count() == before + 1 and made.workspace.name == "Trees"
    assert [one.user for one in made.workspace.memberships.all()] == [cast.alice]
    old_runs = Run.objects.filter(experiment__project=cast.project)
    assert set(made.ids["run"]) == {str(run.pk) for run in old_runs}
    for old in old_runs:
        new = Run.objects.get(pk=made.ids["run"][str(old.pk)])
        _same_run(old, new)
        assert new.project.workspace == made.workspace and new.pk != old.pk
    new = Run.objects.get(pk=made.ids["run"][str(full.pk)])
    assert events_of(new) and series_of(new)[0]
    _same_datasets(cast, made)
    assert new.dataset_version.dataset.project == new.project
    _same_registry(cast, made, new)
    (comment,) = Comment.objects.filter(run=new)
    assert (comment.author, comment.text) == (cast.bob, "look here")
    report = ReportPage.objects.get(project=new.project)
    assert (report.title, report.created_by) == ("What we saw", cast.bob)
    assert str(new.pk) in report.text and str(full.pk) not in report.text
    drawn = [one.data["nodes"] for one in FrozenFigure.objects.order_by("page")]
    assert len(drawn) == 2 and drawn[0] == drawn[1] != []
    search = Search.objects.get(run__experiment__project__workspace=made.workspace)
    theirs = Search.objects.exclude(pk=search.pk).get()
    assert search.problem == theirs.problem and search.run.state == RunState.STOPPED
    client.force_login(cast.alice)
    version = ModelVersion.objects.get(model__project=new.project, number=2)
    stored = DatasetVersion.objects.get(dataset__project=new.project, dataset__name="stored")
    for path in (
        f"/runs/{new.pk}/",
        f"/datasets/{stored.dataset_id}/",
        f"/datasets/versions/{stored.pk}/",
        f"/models/{version.model_id}/versions/{version.number}/",
        f"/runs/{search.run_id}/",
        f"/reports/{report.pk}/",
    ):
        assert client.get(path).status_code == 200, path
    assert on_the_wire(new) == on_the_wire(full)


def on_the_wire(run):
    """The run's events as REST and the stream send them."""
    with connection.cursor() as cursor:
        cursor.execute(wire.AFTER, [run.pk, 0, 1_000_000])
        return [wire.encode_row(row) for row in cursor.fetchall()]


def _same_run(old, new):
    kept = (
        "number config variant seed step steps error result tags notes restarts tracked head_seq "
        "started_at finished_at queued_at created created_by"
    )
    for name in kept.split():
        assert getattr(new, name) == getattr(old, name), name
    assert new.outside and new.lease_expires is None and new.run_state in ENDED
    if old.run_state in ENDED:
        assert new.state == old.state
    assert events_of(new) == events_of(old)
    assert series_of(new) == series_of(old)
    assert seconds_of(new) == pytest.approx(seconds_of(old), abs=2e-6)
    if old.tracked:
        assert new.tracking.config == old.tracking.config == {"lr": 0.1}
        assert new.tracking.key == "theirs"
    assert f"there run {old.pk}" in new.actions.get().detail


def _same_datasets(cast, made):
    columns = [
        "number",
        "problem",
        "content_hash",
        "statement",
        "kind",
        "public_tests",
        "private_tests",
        "difficulty",
        "tags",
        "offset",
        "length",
        "check_state",
        "check_reason",
    ]
    old = DatasetVersion.objects.filter(dataset__project=cast.project)
    assert len(old) == len(made.ids["dataset version"]) >= 2
    for one in old:
        new = DatasetVersion.objects.get(pk=made.ids["dataset version"][str(one.pk)])
        for name in [
            "number",
            "spec",
            "content_hash",
            "artifact",
            "faulty",
            "statistics",
            "note",
            "created_by",
        ]:
            assert getattr(new, name) == getattr(one, name), name
        rows = DatasetProblem.objects.order_by("number").values_list(*columns)
        assert list(rows.filter(version=new)) == list(rows.filter(version=one))
    assert DatasetProblem.objects.filter(check_state="failed").count() == 2


def _same_registry(cast, made, run):
    model = Model.objects.get(project=run.project)
    first, second = model.versions.order_by("number")
    for new in (first, second):
        old = ModelVersion.objects.get(model__project=cast.project, number=new.number)
        for name in [
            "sha256",
            "parameters",
            "agent",
            "step",
            "metadata",
            "notes",
            "created_by",
            "path",
        ]:
            assert getattr(new, name) == getattr(old, name), name
        files = [list(one.files.values_list("name", "size", "artifact")) for one in (old, new)]
        assert files[0] == files[1] and len(files[0]) >= 5
        for _, size, sha256 in files[1]:
            content = open_artifact(sha256).read()
            assert len(content) == size and hashlib.sha256(content).hexdigest() == sha256
    assert second.parent == first and second.run == run
    assert run.model_uses.get().version == first
    assert model.aliases.get().version == second and model.aliases.get().name == "champion"
    states = list(model.promotions.order_by("pk").values_list("state", "reason"))
    assert states == [("done", "better"), ("withdrawn", "better")]
    evaluation = Evaluation.objects.get(version=second)
    assert evaluation.figures["pass@1"]["value"] == 0.1 + 0.2
    assert evaluation.outcomes == {"contents": ["a"], "outcomes": {"pass@1": [1.0]}}


@pytest.fixture
def small(cast, var_directory):
    """A workspace with a finished run, on which somebody wrote."""
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 5))
    services.mark_finished(run.pk, fencing)
    write_comment(Target((run,)), cast.bob, "@mia look", "http://testserver")
    return run


def test_an_export_is_imported_once_and_in_the_name_of_its_importer(cast, small, tmp_path):
    path = exported(cast, tmp_path / "x.zip")
    theirs = cast.charlie.memberships.get().workspace
    made = import_workspace(path, cast.charlie, theirs)
    run = Run.objects.get(experiment__project__workspace=theirs)
    comment = run.comments.get()
    assert run.created_by == comment.author == cast.charlie
    assert (
        comment.text == "By `bob`:\n\n@mia look" and "Created by alice" in run.actions.get().detail
    )
    assert made.people == dict.fromkeys(("alice", "bob", "mia", "vera"), "charlie")
    assert not cast.mia.notices.filter(comment=comment).exists()
    for into in (theirs, None):
        with pytest.raises(ImportRefused, match=r"was imported on .* into Elsewhere"):
            import_workspace(path, cast.charlie, into)
    other = import_workspace(path, cast.alice, name="Copy")
    assert other.workspace.name == "Copy" and other.digest == made.digest


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_or_damaged_file_changes_nothing_and_is_named(cast, small, tmp_path):
    path = exported(cast, tmp_path / "x.zip")
    before = rows_now()
    for reason, data in damaged_files(path, small.pk).items():
        damaged = tmp_path / "damaged.zip"
        damaged.write_bytes(data)
        with pytest.raises(ImportRefused, match=reason):
            import_workspace(damaged, cast.alice)
        assert rows_now() == before, reason
    import_workspace(path, cast.alice)


def rows_now():
    tables = (Workspace, Experiment, Run, Event, Comment, DatasetVersion, ModelVersion)
    return [table.objects.count() for table in (*tables, WorkspaceImport)]


def test_a_file_of_the_other_server_is_never_a_path_here(cast, small, tmp_path):
    version = version_of(cast.project, ProblemsConfig(train=5, validation=0, test=3))
    spec = {**version.spec, "dataset": "/etc/passwd"}
    DatasetVersion.objects.filter(pk=version.pk).update(spec=spec)
    made = import_workspace(exported(cast, tmp_path / "x.zip"), cast.alice)
    new = DatasetVersion.objects.get(dataset__project__workspace=made.workspace)
    assert new.spec == {**version.spec, "dataset": "local:passwd"}


def test_the_operator_imports_on_the_command_line(cast, small, tmp_path, capsys, monkeypatch):
    path = exported(cast, tmp_path / "x.zip")
    monkeypatch.setenv("DATABASE_URL", "the one of this test")
    for words, reason in (
        (("--user", "nobody"), "no such account"),
        (("--user", "bob", "--into", "trees"), "bob owns no workspace"),
    ):
        with pytest.raises(SystemExit, match=reason):
            call_command("import_workspace", path, *words)
    call_command("import_workspace", path, "--user", "charlie", "--into", "elsewhere")
    run = Run.objects.get(experiment__project__workspace__slug="elsewhere")
    assert run.created_by == cast.alice and "1 runs" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"x\.zip was not imported\. .* where all of it is"):
        call_command("import_workspace", path, "--user", "charlie", "--into", "elsewhere")
