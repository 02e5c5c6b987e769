"""Tests of exports: what a worker writes of a project or a run, and who may get it."""

import csv
import io
import json
import threading
from datetime import timedelta

import pytest
from django.utils import timezone
from pyarrow import parquet

from engine.events.vocabulary import Event as LogEvent
from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, an_event
from tests.helpers.sample_log import Sample, sample_events
from webapp.csv_cells import safe_cell
from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import RunQuery
from webapp.exports import services
from webapp.exports.making import make
from webapp.exports.models import Export, ExportState, Format, Table, exports_directory
from webapp.projects.services import create_project, create_workspace
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Block, Event
from workers.jobs.exports import clean_up, write_one

SAMPLE = Sample(seed=5, steps=3, trees=2, nodes=4)
EXACT = 0.1 + 0.2
OPEN = threading.Event()
"""Never set: stands for a worker that does not end."""


@pytest.fixture
def logged_run(cast, var_directory):
    """A run with a whole log, under a name that a spreadsheet would execute."""
    run, fencing = a_held_run(cast)
    run.experiment.name = '=HYPERLINK("http://evil", "x")'
    run.experiment.save()
    events = list(sample_events(SAMPLE))
    last = events[-1].seq
    result = {"step": 3, "split": "test", "agents": {"oak": EXACT}, "standard_errors": {},
              "problems": 9, "tree": 0.5}  # fmt: skip
    logged = {"step": 3, "texts": {"note": "=1+2"}}
    events += [
        LogEvent(last + 1, events[-1].time, "eval.result", None, None, result),
        LogEvent(last + 2, events[-1].time, "metric.logged", None, None, logged),
    ]
    ingest(run.pk, fencing, events)
    run.refresh_from_db()
    return run


def requested_export(run, table, file=Format.JSONL, **query):
    return services.request_export(run.project, run.created_by, table, file, RunQuery(**query))


def written(export):
    """The export after the worker has handled the queue."""
    assert write_one()
    export.refresh_from_db()
    return export


def rows_of(export):
    """Its rows as dicts: strings from CSV, typed values from the others."""
    assert export.export_state is ExportState.READY, export.error
    assert export.size == export.path.stat().st_size
    if export.format == Format.PARQUET:
        return parquet.read_table(export.path).to_pylist()
    text = export.path.read_text("utf-8")
    if export.format == Format.CSV:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.splitlines()]


def test_a_failure_names_no_path_of_the_server(logged_run):
    export = requested_export(logged_run, Table.RUNS)
    export.path.mkdir(parents=True)
    assert written(export).export_state is ExportState.FAILED
    assert "Is a directory" in export.error and "/" not in export.error, export.error


@pytest.mark.parametrize("table", Table)
def test_all_formats_hold_the_same_exact_rows(logged_run, table):
    files = {file: rows_of(written(requested_export(logged_run, table, file))) for file in Format}
    as_json, as_parquet, as_csv = (files[file] for file in ("jsonl", "parquet", "csv"))
    assert as_json and len(as_json) == len(as_parquet) == len(as_csv)
    for plain, typed, texts in zip(as_json, as_parquet, as_csv, strict=True):
        assert list(plain) == list(typed) == list(texts)
        for name, value in plain.items():
            if isinstance(value, bool) or value is None:
                assert texts[name] == ("" if value is None else str(value).lower())
            elif isinstance(value, int | float):
                assert typed[name] == value == float(texts[name])
            elif hasattr(typed[name], "isoformat"):
                assert typed[name].isoformat() == texts[name]
            else:
                assert typed[name] == value and texts[name] == safe_cell(value), name


def test_a_table_holds_the_events_of_the_run(logged_run):
    points = rows_of(written(requested_export(logged_run, Table.METRICS)))
    stored = {
        (block.metric.name, block.index * 32 + index): value
        for block in Block.objects.select_related("metric")
        for index, value in enumerate(block.value)
    }
    assert {(row["metric"], row["position"]): row["value"] for row in points} == stored
    nodes = rows_of(written(requested_export(logged_run, Table.NODES)))
    closed = Event.objects.filter(run=logged_run, kind="node.close").order_by("seq")
    assert [(row["node"], row["program"]) for row in nodes] == [
        (one.node, one.payload["program"]) for one in closed
    ]
    credited = Event.objects.filter(run=logged_run, kind="node.credit").order_by("tree", "node")
    assert sorted((r["tree"], r["node"], r["advantage"]) for r in nodes if r["advantage"]) == [
        (one.tree, one.node, one.payload["advantage"]) for one in credited
        if one.payload["advantage"]
    ]  # fmt: skip
    evaluations = rows_of(written(requested_export(logged_run, Table.EVALUATIONS)))
    mine = [(r["figure"], r["value"]) for r in evaluations if r["split"] == "test"]
    assert mine[-2:] == [("pass@1/oak", EXACT), ("tree/pass@1", 0.5)]


def test_values_that_a_program_logged_are_a_table_and_numbers_among_the_metrics(logged_run):
    head, fencing = logged_run.head_seq, logged_run.fencing
    histogram = {"edges": [0.0, 1.0], "counts": [3.0]}
    first = {"numbers": {"train/loss": EXACT}, "texts": {"first": "a text"}}
    second = {"histograms": {"h": histogram}, "nonfinite": {"loss": "nan"}}
    events = [
        an_event(head + 1, "metric.logged", step=2, **first),
        an_event(head + 2, "metric.logged", step=3, **second),
        an_event(head + 3, "run.resumed", step=2),
    ]
    ingest(logged_run.pk, fencing, events[:2])
    rows = rows_of(written(requested_export(logged_run, Table.LOGGED)))
    assert [(r["step"], r["kind"], r["logged"], r["value"]) for r in rows] == [
        (3, "texts", "note", "=1+2"),
        (2, "texts", "first", "a text"),
        (3, "histograms", "h", '{"counts":[3.0],"edges":[0.0,1.0]}'),
        (3, "nonfinite", "loss", "nan"),
    ]
    points = rows_of(written(requested_export(logged_run, Table.METRICS)))
    assert [r["value"] for r in points if r["metric"] == "logged.train~1loss"] == [EXACT]
    ingest(logged_run.pk, fencing, events[2:])
    rows = rows_of(written(requested_export(logged_run, Table.LOGGED)))
    assert [r["logged"] for r in rows] == ["first"]


def test_repeated_steps_of_a_resumed_run_are_exported_once(logged_run):
    before = rows_of(written(requested_export(logged_run, Table.NODES)))
    fencing = Run.objects.get(pk=logged_run.pk).fencing
    ingest(logged_run.pk, fencing, [an_event(logged_run.head_seq + 1, "run.resumed", step=1)])
    after = rows_of(written(requested_export(logged_run, Table.NODES)))
    assert after == [row for row in before if row["step"] == 1] and len(after) < len(before)


def test_the_filters_are_those_of_the_list_of_runs(logged_run, cast):
    done = a_run(cast, RunState.FINISHED, tags=["baseline"])
    hidden = a_run(cast, archived_at=timezone.now())

    def ids(**query):
        return {
            row["run"]
            for row in rows_of(written(requested_export(logged_run, Table.RUNS, **query)))
        }

    assert ids() == {str(logged_run.pk), str(done.pk)}
    assert ids(state="finished") == ids(tag="baseline") == {str(done.pk)}
    assert ids(archived=True) == {str(hidden.pk)} and ids(q="hyperlink") == {str(logged_run.pk)}
    one = services.request_export(
        logged_run.project, cast.vera, Table.RUNS, Format.JSONL, RunQuery(), done
    )
    assert [row["run"] for row in rows_of(written(one))] == [str(done.pk)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])
def test_no_text_begins_a_formula(text):
    assert safe_cell(text) == f"'{text}"
    assert safe_cell(f"a{text}") == f"a{text}"


def test_a_user_who_lost_access_to_the_project_gets_no_file(logged_run, cast):
    export = services.request_export(
        logged_run.project, cast.vera, Table.RUNS, Format.CSV, RunQuery()
    )
    cast.vera.memberships.all().delete()
    assert written(export).export_state is ExportState.FAILED
    assert "may not see" in export.error and not list(exports_directory().iterdir())


def test_a_worker_that_ends_gives_it_back_and_one_that_is_late_has_lost_it(logged_run, monkeypatch):
    monkeypatch.setenv("GROVE_EXPORT_SECONDS", "720")
    export = requested_export(logged_run, Table.METRICS)
    ending = threading.Event()
    ending.set()
    make(services.take(), ending)
    export.refresh_from_db()
    assert export.export_state is ExportState.QUEUED and export.attempt == 1
    taken = services.take()
    Export.objects.update(deadline=timezone.now() - timedelta(seconds=1))
    assert services.fail_late() == 1 and services.take() is None
    make(taken, OPEN)
    export.refresh_from_db()
    assert export.export_state is ExportState.FAILED and "12 minutes" in export.error
    assert export.error.endswith("raise GROVE_EXPORT_SECONDS or GROVE_PATIENCE")
    assert not list(exports_directory().iterdir())


def test_workspaces_and_people_take_turns_however_many_exports_one_has_queued(cast):
    def request(project, user):
        return services.request_export(project, user, Table.RUNS, Format.JSONL, RunQuery())

    flood = []
    for index in range(3):
        workspace = create_workspace(f"W{index}", f"w{index}", cast.bob)
        project = create_project(workspace, "P", "p", created_by=cast.bob)
        flood += [request(project, cast.bob), request(project, cast.bob)]
    late = request(cast.project, cast.alice)
    assert services.take().pk == flood[0].pk
    assert services.take().pk == late.pk
    assert services.take().pk in {one.pk for one in flood}


def test_a_failed_export_reports_its_first_cause(logged_run):
    Event.objects.filter(run=logged_run, kind="eval.result").update(payload={"step": 1})
    export = written(requested_export(logged_run, Table.EVALUATIONS))
    assert export.export_state is ExportState.FAILED and "split" in export.error
    assert not list(exports_directory().iterdir())


def test_an_export_expires_after_a_week_with_its_file(logged_run):
    export = written(requested_export(logged_run, Table.RUNS))
    assert timedelta(days=6) < export.expires - timezone.now() <= timedelta(days=7)
    Export.objects.update(expires=timezone.now())
    clean_up()
    assert not Export.objects.exists() and not export.path.exists()


def test_no_file_outlives_its_project_nor_a_draft_its_writer(logged_run):
    kept, export = (
        written(requested_export(logged_run, Table.RUNS)),
        requested_export(logged_run, Table.NODES),
    )
    draft = export.path.with_suffix(".1.part")
    draft.touch()
    services.take()
    clean_up()
    assert kept.path.exists() and draft.exists()
    services.fail(Export.objects.get(pk=export.pk), "the worker was killed")
    clean_up()
    assert kept.path.exists() and not draft.exists()
    logged_run.delete()
    logged_run.experiment.delete()
    logged_run.project.delete()
    clean_up()
    assert not list(exports_directory().iterdir())


def test_a_project_has_only_so_many_under_way(logged_run, monkeypatch):
    monkeypatch.setattr(services, "MOST_QUEUED", 1)
    requested_export(logged_run, Table.RUNS)
    with pytest.raises(services.TooManyExports, match="wait"):
        requested_export(logged_run, Table.RUNS)


def test_rest_requests_waits_and_downloads(logged_run, cast, client):
    client.force_login(cast.vera)
    new = {"run": str(logged_run.pk), "table": "nodes", "format": "csv"}
    made = client.post("/api/v1/exports", new, "application/json").json()
    address = f"/api/v1/exports/{made['id']}"
    assert made["state"] == "queued" and made["run"] == str(logged_run.pk)
    early = client.get(f"{address}/file")
    assert early.status_code == 409 and "queued" in early.json()["detail"]
    assert write_one()
    ready = client.get(address).json()
    response = client.get(f"{address}/file")
    assert ready["state"] == "ready" and response["ETag"] == f'"{ready["sha256"]}"'
    assert response["Content-Disposition"].startswith("attachment;")
    content = b"".join(response)
    assert len(content) == ready["size"] == int(response["Content-Length"])
    assert content.count(b"HYPERLINK") and b"\n=" not in content
    again = client.get(f"{address}/file", headers={"if-none-match": response["ETag"]})
    assert again.status_code == 304
    client.force_login(cast.charlie)
    for path in (address, f"{address}/file"):
        assert client.get(path).status_code == 404
    assert client.delete(address).status_code == 404
    client.force_login(cast.vera)
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    "new, path",
    [
        ({}, "project"),
        ({"project": 1, "run": "00000000-0000-0000-0000-000000000000"}, "project"),
        ({"project": None, "filters": {"sort": "colour"}}, "filters.sort"),
        ({"project": None, "filters": {"colour": "red"}}, "filters.colour"),
        ({"project": None, "format": "xlsx"}, "format"),
    ],
)
def test_an_invalid_export_request_names_the_field(cast, client, new, path):
    client.force_login(cast.bob)
    if "project" in new and new["project"] is None:
        new = {**new, "project": cast.project.pk}
    response = client.post("/api/v1/exports", new, "application/json")
    assert response.status_code == 422 and response.json()["problems"][0]["path"] == path


def test_a_list_of_exports_is_walked_by_cursor(logged_run, client):
    made = {str(requested_export(logged_run, Table.RUNS).pk) for _ in range(3)}
    client.force_login(logged_run.created_by)
    first = client.get("/api/v1/exports?limit=2").json()
    rest = client.get("/api/v1/exports", {"limit": 2, "cursor": first["next"]}).json()
    assert {one["id"] for one in first["exports"] + rest["exports"]} == made
    assert rest["next"] is None
    assert client.get("/api/v1/exports?cursor=x").status_code == 422
    assert client.get("/api/v1/exports?state=ready").json()["exports"] == []


def test_too_many_export_requests_return_when_to_retry(cast, client, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "export files": (1, 3600.0)}
    client.force_login(cast.bob)
    assert client.post("/exports/", {}).status_code != 429
    for address, kind in (("/api/v1/exports", "application/json"), ("/exports/", None)):
        response = client.post(address, {}, **({"content_type": kind} if kind else {}))
        assert response.status_code == 429 and int(response["Retry-After"]) > 0


def test_the_page_requests_shows_and_removes(
    logged_run, cast, client, django_capture_on_commit_callbacks
):
    client.force_login(cast.bob)
    page = client.get("/exports/?state=finished")
    assert page.context["filters"] == {"state": "finished"} and b"No exports yet" in page.content
    body = {"project": logged_run.project.pk, "table": "runs", "format": "csv"}
    assert client.post("/exports/?state=finished", body).status_code == 302
    (export,) = Export.objects.all()
    assert export.filters == {"state": "finished"} and export.created_by == cast.bob
    assert client.get("/exports/").context["pending"]
    assert write_one()
    shown = client.get(f"/exports/?run={logged_run.pk}")
    assert f"/api/v1/exports/{export.pk}/file".encode() in shown.content
    wrong = client.post("/exports/", {**body, "table": "secrets"})
    assert wrong.status_code == 422
    client.force_login(cast.vera)
    assert client.post(f"/exports/{export.pk}/remove/").status_code == 403
    client.force_login(cast.bob)
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(f"/exports/{export.pk}/remove/").status_code == 302
    assert not Export.objects.exists() and not export.path.exists()
