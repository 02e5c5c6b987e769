"""Tests that a worker's log lines and metrics name the run that they are about."""

import io
import json
import logging
import shlex

import pytest

from engine.config.log_lines import JsonLines
from engine.events.vocabulary import RunState
from tests.workers.engines import a_run, small_engine
from webapp.http.log_context import LogContext, run_id
from webapp.http.metrics import REGISTRY
from workers.metrics import RunsAtWork
from workers.runs.active_runs import supervise_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.service]


def test_lines_and_metrics_of_a_supervised_run_name_it(var, monkeypatch):
    monkeypatch.setenv("GROVE_ENGINE_COMMAND", shlex.join(small_engine(steps=1)))
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines())
    handler.addFilter(LogContext())
    at_work = []
    handler.addFilter(lambda record: at_work.extend(RunsAtWork().collect()) or True)
    logging.getLogger("workers").addHandler(handler)
    run, before = a_run(), ended()
    try:
        supervise_run(run.pk)
    finally:
        logging.getLogger("workers").removeHandler(handler)
    run.refresh_from_db()
    assert run.run_state is RunState.FINISHED
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert len(lines) >= 2 and {line["run_id"] for line in lines} == {str(run.pk)}
    assert run_id.get() == ""
    assert ended() == before + 1
    samples = [sample for family in at_work for sample in family.samples]
    assert {sample.name for sample in samples} == {
        "grove_run_heartbeat_seconds", "grove_run_unshipped_bytes",
    }  # fmt: skip
    assert {sample.labels["run"] for sample in samples} == {str(run.pk)}
    assert samples[-1].value == 0  # all of its log is stored


def ended():
    return REGISTRY.get_sample_value("grove_runs_ended_total", {"state": "finished"}) or 0
