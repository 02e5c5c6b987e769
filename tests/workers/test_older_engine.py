"""Tests that a web process serves the runs of workers and engines of the release before it.

The engine writes the events that this release's log held, as its dump in `tests/data/schemas` has
them. The worker works on a schema with columns that it does not know.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from django.apps import apps
from django.db import connection
from django.db.models import NOT_PROVIDED

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_token
from tests.helpers.older_release import columns, events_of_a_run, previous
from tests.helpers.waiting import eventually, patience
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from tests.workers.engines import a_run
from webapp.accounts.models import Scope
from webapp.telemetry.selectors import folded
from workers.runs.active_runs import supervise_run

ENGINE = Path(__file__).with_name("older_engine.py")
WRITTEN_BY_WORKERS = (
    "artifacts_artifact", "datasets_datasetproblem", "datasets_datasetreport", "experiments_run",
    "exports_export", "registry_modelversion", "telemetry_event", "telemetry_metric",
)  # fmt: skip
UPDATED_ONLY: dict[str, set[str]] = {}
"""Required columns of tables to which a worker of that release adds no rows."""
LATER = ("experiments_run", "telemetry_event")
"""Tables that get a column of a later migration."""


def test_a_worker_of_the_release_before_can_write_to_this_schema():
    before = columns(previous())
    now = {model._meta.db_table: model._meta for model in apps.get_models()}
    for table in WRITTEN_BY_WORKERS:
        fields = {field.column: field for field in now[table].local_concrete_fields}
        gone = before[table] - fields.keys() - {"CONSTRAINT"}
        assert not gone, f"{table}: keep {gone} until the next release, which does not write them"
        required = {
            name
            for name, field in fields.items()
            if name not in before[table] and not field.null and field.db_default is NOT_PROVIDED
        }
        assert required <= UPDATED_ONLY.get(table, set()), f"{table}: give {required} a db_default"


@contextmanager
def a_later_schema():
    """Columns of a migration that came while the worker was at work."""
    with connection.cursor() as cursor:
        for table in LATER:
            cursor.execute(f"ALTER TABLE {table} ADD later text NOT NULL DEFAULT 'x'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for table in LATER:
                cursor.execute(f"ALTER TABLE {table} DROP later")


@contextmanager
def supervised(run):
    """A worker that supervises the run; at the end of the block it has ended."""

    def work():
        with closing(connection):
            supervise_run(run.pk)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    yield
    worker.join(120 * patience())
    assert not worker.is_alive(), "the supervisor does not end"


@pytest.mark.large
@pytest.mark.service
@pytest.mark.django_db(transaction=True)
def test_a_newer_web_streams_and_stops_a_run_of_an_older_engine(var, monkeypatch, tmp_path):
    events = [
        one for one in events_of_a_run(previous()) if one["payload"].get("state") != "finished"
    ]
    unknown = {"kind": "step.forecast", "tree": None, "node": None, "payload": {"rain": [0.5, {}]}}
    events.append({**unknown, "time": events[-1]["time"]})
    events.append({**events[-2], "payload": {**events[-2]["payload"], "of_a_package": {"a": 1}}})
    lines = [{**event, "seq": seq} for seq, event in enumerate(events, 1)]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("GROVE_ENGINE_COMMAND", shlex.join([sys.executable, str(ENGINE), str(file)]))
    run = a_run()
    user, project = run.created_by, run.experiment.project
    bearer = {"Authorization": f"Bearer {a_token(user, project, Scope.RUNS_WRITE)}"}
    with a_later_schema(), a_server() as served, supervised(run):
        with Client(served.port, a_session(user)) as client:
            client.follow(run)
            client.hear_until(len(lines))
            stop = f"http://127.0.0.1:{served.port}/api/v1/runs/{run.pk}/stop"
            assert httpx.post(stop, headers=bearer, timeout=60 * patience()).status_code == 200
            client.hear_until(len(lines) + 1)
            eventually(lambda: state_of(run) is RunState.STOPPED, "the run to stop")
        served.wait_until_idle()
    assert [(seq, kind) for seq, _, kind, _ in client.events[: len(lines)]] == [
        (line["seq"], line["kind"]) for line in lines
    ]
    for (_, _, _, payload), line in zip(client.events, lines, strict=False):
        assert line["payload"].items() <= payload.items(), "as the engine wrote it"
    assert client.events[len(lines)][2:] == ["run.state", {"state": "stopped", "reason": ""}]
    state = folded(run)
    ended = [line for line in lines if line["kind"] == "step.end"]
    assert len(state["steps"]) == len(ended) == run.step
    assert sum(len(tree["nodes"]) for tree in state["trees"]) > 2


def state_of(run):
    run.refresh_from_db()
    return run.run_state
