"""Tests that a trace goes from a request over the queue and the worker into the engine."""

from __future__ import annotations

import os
import sys

import httpx
import pytest
from django.db import connection, transaction

from engine.config import tracing
from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_token
from tests.helpers.collector import a_collector
from tests.helpers.site import Server
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import a_run
from tests.workers.test_worker import Worker, state_of
from webapp.accounts.models import Scope
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.dispatch import dispatch_on_commit
from workers.runs.engine_process import EngineProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.service]

ON = "OTEL_EXPORTER_OTLP_ENDPOINT"
PRINTS = "import os; print('parent', os.environ.get('TRACEPARENT'))"


@pytest.fixture
def collector(monkeypatch):
    with a_collector() as collector:
        monkeypatch.setenv(ON, collector.url)
        yield collector
        tracing.stop()


def a_stopped_run():
    """A run of Bob's that can be resumed, and a token of his that may."""
    cast = a_cast()
    experiment = Experiment.objects.create(
        project=cast.project, name="Traced", created_by=cast.bob, config={}
    )
    run = Run.objects.create(
        experiment=experiment, number=1, config={}, seed=0, created_by=cast.bob,
        state=RunState.STOPPED,
    )  # fmt: skip
    return run, a_token(cast.bob, cast.project, Scope.RUNS_WRITE)


@pytest.mark.large
@pytest.mark.slow
def test_one_trace_goes_from_the_request_to_the_calls_of_the_engine(
    var, collector, monkeypatch, settings
):
    """`tests/engine/training/test_spans.py` has the engine's part in a training."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    run, token = a_stopped_run()
    parts = connection.settings_dict
    database = f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}"
    key = settings.SECRET_KEY  # of the token's digest
    server = Server(var, database, {"BROKER_URL": "filesystem://", "GROVE_SECRET_KEY": key})
    server.start()
    try:
        with Worker(var, steps=2) as worker:
            address = f"{server.url}/api/v1/runs/{run.pk}/resume"
            headers = {
                "Authorization": f"Bearer {token}",
                "X-Request-ID": "mine",
                "traceparent": f"00-{'a' * 32}-{'b' * 16}-00",  # a stranger's
            }
            response = httpx.post(address, headers=headers, timeout=60 * patience())
            assert response.status_code == 200, response.text
            ends = (RunState.FINISHED, RunState.FAILED)
            eventually(lambda: state_of(run) in ends, "the run to end")
            assert (state_of(run), run.error) == (RunState.FINISHED, "")
            assert worker.close() == 0
        names = {"launch", "train", "step", "answer"}
        eventually(lambda: names <= {one.name for one in collector.spans()}, "the spans")
        chain = chain_of(collector.spans(), "answer")
    finally:
        server.kill()
    assert [(one.service, one.name) for one in chain] == [
        ("grove-engine", "answer"),
        ("grove-engine", "generate"),
        ("grove-engine", "step"),
        ("grove-engine", "train"),
        ("grove-worker", "launch"),
        ("grove-web", "POST /api/v1/runs/<uuidstr:run_id>/resume"),
    ]
    assert len({one.trace for one in chain}) == 1 and chain[-1].trace != "a" * 32
    assert chain[-1].attributes["grove.request.id"] == "mine" and not chain[-1].parent
    assert chain[-1].attributes["http.response.status_code"] == 200
    assert not any("healthz" in one.name for one in collector.spans())  # `Server` has probed it
    about = {one.attributes["grove.run.id"] for one in chain if one.name in ("launch", "train")}
    assert about == {str(run.pk)}


def chain_of(spans, name):
    """A span of this name, then those around it, from the inside."""
    by_id = {one.id: one for one in spans}
    chain = [next(one for one in spans if one.name == name)]
    while chain[-1].parent in by_id:
        chain.append(by_id[chain[-1].parent])
    return chain


def test_a_queued_run_names_the_span_that_queued_it(var, collector):
    run = a_run()
    tracing.start("grove-web")
    with tracing.request_span("POST", "mine"), transaction.atomic():
        dispatch_on_commit(run.pk)
        expected = tracing.traceparent()
    tracing.stop()
    run.refresh_from_db()
    (span,) = collector.spans()
    assert run.traceparent == expected == f"00-{span.trace}-{span.id}-01"


def test_without_a_collector_a_queued_run_costs_no_query(var, django_assert_num_queries):
    assert not os.environ.get(ON)
    run = a_run()
    with transaction.atomic(), django_assert_num_queries(0):
        dispatch_on_commit(run.pk)
    run.refresh_from_db()
    assert run.traceparent == ""


@pytest.mark.parametrize("on", [True, False])
def test_an_engine_gets_its_parent_only_with_traces(tmp_path, collector, monkeypatch, on):
    monkeypatch.setenv(tracing.PARENT, f"00-{'a' * 32}-{'b' * 16}-01")  # of who started the worker
    if on:
        tracing.start("grove-worker")
    with tracing.span("launch", {}, trace_of="run"):
        expected = tracing.traceparent() or None
        engine = EngineProcess.start(tmp_path, (sys.executable, "-c", PRINTS))
    eventually(lambda: engine.poll() is not None, "the engine to end")
    assert f"parent {expected}\n" in (tmp_path / "engine.log").read_text()
    assert (expected is not None) is on
