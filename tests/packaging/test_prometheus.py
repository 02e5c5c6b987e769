"""Test that a real Prometheus reads `deploy/prometheus.yml` and scrapes web, worker and engine.

`test_fresh_machine.py` has it scrape their processes during a training.
"""

from __future__ import annotations

import subprocess

import msgspec
import pytest

from engine.events.log import FILE_NAME
from engine.run.metrics_server import ADDRESS, TOKEN_FILE, serving
from tests.helpers.ports import a_port
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.waiting import eventually
from tests.packaging.prometheus import (
    CONFIGURATION,
    SECRET,
    a_prometheus,
    here,
    needs_prometheus,
    value_of,
)
from tests.webapp.telemetry.stream_server import a_server
from workers.metrics import serve

TOKEN = "a-token-of-sixteen"

pytestmark = [pytest.mark.large, pytest.mark.slow, needs_prometheus]


def test_the_configuration_is_valid(tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    file = tmp_path / "prometheus.yml"
    file.write_text(CONFIGURATION.read_text().replace(SECRET, str(token)))
    done = subprocess.run(["promtool", "check", "config", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_prometheus_scrapes_web_worker_and_engine(
    django_db_setup, db, settings, tmp_path, monkeypatch
):
    settings.METRICS_TOKEN = TOKEN
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    events = list(sample_events(Sample(steps=2, trees=2, nodes=3)))
    lines = [msgspec.json.encode(event) + b"\n" for event in events]
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines))
    monkeypatch.setenv(ADDRESS, "127.0.0.1:0")
    monkeypatch.setenv(TOKEN_FILE, str(token))
    monkeypatch.setenv("GROVE_WORKER_METRICS", f"127.0.0.1:{a_port()}")
    worker = serve()
    try:
        with a_server() as web, serving(tmp_path) as engine:
            targets = {8000: web.port, 9101: worker.server_port, 9102: engine}
            with a_prometheus(tmp_path, here(targets, token)) as address:
                for query, expected in (
                    ('max(grove_database_up{job="grove"})', 1),
                    ('max(grove_queue_runs{job="grove"})', 0),
                    (f'sum(up{{instance="127.0.0.1:{worker.server_port}"}})', 1),
                    ('max(grove_engine_step{job="grove-engine"})', 2),
                    ('sum(grove_engine_nodes_total{job="grove-engine"})',
                     sum(event.kind == "node.close" for event in events)),
                ):  # fmt: skip
                    eventually(lambda q=query, e=expected: value_of(address, q) == e, query)
    finally:
        worker.shutdown()
        worker.server_close()
