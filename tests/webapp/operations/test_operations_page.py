"""Tests of the operators' page: real figures, faults of a part, and nothing for anybody else."""

import threading
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from engine.config.deadlines import RUN_LEASE
from engine.events.vocabulary import RunState
from engine.run.exit_status import isolation_line
from tests.helpers.builders import a_held_run, a_run, an_event
from tests.helpers.waiting import eventually
from webapp import __version__
from webapp.experiments.models import Run
from webapp.operations import overview, queries
from webapp.operations.active_runs import tier_in
from webapp.operations.processes import read_processes
from webapp.projects.models import Visibility
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event


def a_connection(name: str) -> psycopg.Connection:
    """A connection of its own to the tests' database, as a process of that name has."""
    given = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return psycopg.connect(
        application_name=name, autocommit=True, **{key: given[key] for key in names if key in given}
    )


def now(read):
    """What `read` returns now: Postgres reads its activity once per transaction, and a test has
    one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
    return read()


def test_processes_are_those_that_are_connected(db):
    name = f"grove worker {__version__} 4711@oak"
    with a_connection(name), a_connection(name), a_connection("grove web 0.0.1 12@elm"):
        found, others = now(read_processes)
        by_pid = {one.pid: one for one in found}
        assert by_pid[4711].connections == 2 and by_pid[4711].is_current
        assert by_pid[12].kind == "web" and not by_pid[12].is_current and others >= 1
    eventually(lambda: not now(read_processes)[0], "the processes to be gone", 10)


@pytest.mark.large
def test_a_query_that_runs_for_long_is_named(db):
    with a_connection("grove worker 1 2@oak") as slow:
        thread = threading.Thread(target=slow.execute, args=("SELECT pg_sleep(3), 'slow'",))
        thread.start()
        (row,) = eventually(lambda: now(queries.running), "the query to be slow", 10)
        assert row.seconds > 1 and "pg_sleep(3)" in row.text and row.process.endswith("2@oak")
        thread.join()


def test_lag_lease_and_tier_are_those_of_the_run(cast):
    run, fencing = a_held_run(cast)
    line = isolation_line("restricted")
    ingest(run.pk, fencing, [an_event(1, "log.line", level=line.level, message=line.message)])
    began = timezone.now() - timedelta(seconds=40)
    ends = began + timedelta(seconds=RUN_LEASE.seconds)
    Run.objects.filter(pk=run.pk).update(engine_pid=77, lease_expires=ends)
    Event.objects.filter(run=run.pk).update(time=began)
    (row,) = overview.read(cast.alice)["runs"].value
    most = (timezone.now() - began).total_seconds()
    assert (row.name, row.worker, row.engine_pid) == (str(run), "worker", 77)
    assert row.tier == "restricted" and tier_in(isolation_line("none").message) == "none"
    assert 39 < row.heartbeat_seconds <= most and 39 < row.lag_seconds <= most


def test_one_part_that_fails_hides_no_other(client, cast, settings):
    """The directory of files is gone, so that its disk cannot be read."""
    settings.GROVE_VAR = settings.GROVE_VAR / "nowhere"
    client.force_login(cast.alice)
    page = client.get("/operations/").content.decode()
    assert "This part cannot be read" in page and "FileNotFoundError" in page
    assert "No run is active" in page and "No query has run for a second" in page
    body = client.get("/api/v1/operations").json()
    assert body["storage"] is None and "FileNotFoundError" in body["errors"]["storage"]
    assert body["queued"] == 0


@pytest.mark.parametrize("who", ["mia", "charlie"])
def test_it_exists_for_operators_alone_and_names_no_run_that_they_do_not_see(
    client, cast, settings, who
):
    client.force_login(getattr(cast, who))
    assert client.get("/operations/").status_code == 404
    assert b"/operations/" not in client.get("/workspaces/").content
    settings.OPERATORS = [who]
    cast.project.visibility = Visibility.PRIVATE
    cast.project.save()
    hidden = a_run(cast, RunState.RUNNING, started_at=timezone.now() - timedelta(hours=1))
    page = client.get("/operations/").content.decode()
    assert "hidden run" in page and str(hidden) not in page
    assert b"/operations/" in client.get("/workspaces/").content
