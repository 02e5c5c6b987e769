"""Tests of the metrics of web and worker: what they count, and who reads them."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, an_event, some_events
from tests.helpers.ports import a_port
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import a_server
from webapp.artifacts.models import Upload
from webapp.artifacts.store import put
from webapp.config.environment import SettingError
from webapp.operations.figures import fullest_projects, read
from webapp.operations.metrics import Exposition
from webapp.telemetry.stream.stream_slots import open_of_addresses, take_socket
from workers import metrics
from workers.metrics import serve
from workers.settings import metrics_address

TOKEN = "a token of sixteen".replace(" ", "-")
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def readable(settings):
    settings.METRICS_TOKEN = TOKEN


def samples(text):
    families = text_string_to_metric_families(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def exposed(address, headers=BEARER):
    request = urllib.request.Request(f"{address}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=30 * patience()) as answer:
        return samples(answer.read().decode())


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer wrong-token-of-16", f"Basic {TOKEN}", "Bearer \xe9" * 9]
)
def test_without_the_token_there_is_no_such_page(client, db, settings, given):
    settings.METRICS_TOKEN = TOKEN
    headers = {} if given is None else {"Authorization": given}
    assert client.get("/metrics", headers=headers).status_code == 404
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
    assert client.post("/metrics", headers=BEARER).status_code in (403, 405)


def test_requests_are_counted_by_route_and_status_never_by_path(django_db_setup, db, readable):
    with a_server() as served:
        address = f"http://127.0.0.1:{served.port}"
        before = exposed(address)
        for path, status in (("/runs/3fa85f64-5717-4562-b3fc-2c963f66afa6/", 302), ("/x/y", 404)):
            answer = urllib.request.build_opener(_NoRedirect).open
            with pytest.raises(urllib.error.HTTPError) as refused:
                answer(f"{address}{path}", timeout=30 * patience())
            assert refused.value.code == status
        after = exposed(address)
    route = "/runs/<uuid:run_id>/"
    key = ("grove_http_requests_total", (("method", "GET"), ("route", route), ("status", "302")))
    assert after[key] == before.get(key, 0) + 1
    count = ("grove_http_request_seconds_count", (("method", "GET"), ("route", route)))
    assert after[count] >= 1
    assert not any("3fa85f64" in str(name) or "/x/y" in str(name) for name in after)
    assert after["grove_database_up", ()] == 1 and after["grove_websockets", ()] == 0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def test_figures_are_those_of_the_installation(cast, var_directory):
    a_run(cast, RunState.FINISHED)
    a_run(cast, RunState.QUEUED)
    for _ in range(2):
        a_run(cast, RunState.RUNNING)  # no worker holds it
    a_held_run(cast)
    content = put([b"x" * 100])
    Upload.objects.create(
        project=cast.project, created_by=cast.bob, kind="dataset", name="a", size=100,
        artifact=content, expires=timezone.now(),
    )  # fmt: skip
    found = read()
    assert found.runs["finished"] == found.runs["starting"] == 1 and found.runs["running"] == 2
    assert set(found.runs) == {state.value for state in RunState}
    assert (found.queued, found.leases, found.lapsed) == (1, 1, 2)
    assert (found.artifacts, found.artifact_bytes) == (1, 100)
    assert fullest_projects() == {cast.project.pk: 100}


def test_a_worker_serves_its_own_metrics_to_holders_of_the_token(readable, monkeypatch):
    monkeypatch.setenv("GROVE_WORKER_METRICS", "127.0.0.1:0")
    with pytest.raises(SettingError):
        metrics_address()
    monkeypatch.setenv("GROVE_WORKER_METRICS", f"127.0.0.1:{a_port()}")
    server = serve()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        before = exposed(address)
        close = an_event(2, "node.close", verdict="passed")
        odd = an_event(3, "node.close", verdict="x" * 1000)
        metrics.count_stored([*some_events(1, 1), close, odd])
        after = exposed(address)
        for headers in ({}, {"Authorization": "Bearer another-long-token"}):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                exposed(address, headers)
    finally:
        server.shutdown()
        server.server_close()

    def grown(name, *labels):
        return after[name, labels] - before.get((name, labels), 0)

    assert grown("grove_ingest_events_total") == 3
    assert grown("grove_sandbox_verdicts_total", ("verdict", "passed")) == 1
    assert grown("grove_sandbox_verdicts_total", ("verdict", "other")) == 1
    assert grown("grove_ingest_lag_seconds_count") == 1


@pytest.mark.parametrize("value", ["9101", ":9101", "localhost:", "localhost:99999", "a:b"])
def test_an_unusable_address_of_a_worker_is_refused(readable, monkeypatch, value):
    monkeypatch.setenv("GROVE_WORKER_METRICS", value)
    with pytest.raises(SettingError, match="GROVE_WORKER_METRICS"):
        metrics_address()


def test_a_worker_s_metrics_need_a_token(settings, monkeypatch):
    settings.METRICS_TOKEN = ""
    monkeypatch.setenv("GROVE_WORKER_METRICS", "127.0.0.1:9101")
    with pytest.raises(SettingError, match="GROVE_METRICS_TOKEN"):
        metrics_address()


def test_streams_and_sockets_of_a_process_are_counted_until_they_end():
    before = open_of_addresses()
    slot = take_socket("192.0.2.7")
    assert open_of_addresses() == before + 1
    slot.free()
    assert open_of_addresses() == before


def test_figures_are_left_out_where_the_database_does_not_answer(db):
    def gone(*query):
        raise OperationalError("no route")

    with connection.execute_wrapper(gone):
        families = {family.name: family for family in Exposition(read).collect()}
    assert families["grove_database_up"].samples[0].value == 0
    assert "grove_info" in families and "grove_runs" not in families
