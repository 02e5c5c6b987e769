"""Test that a real Prometheus reads `deploy/prometheus.yml` and scrapes web, worker and engine.

The program is Debian's package `prometheus`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager

import msgspec
import pytest
import yaml

from engine.events.log import FILE_NAME
from engine.run.metrics_server import ADDRESS, TOKEN_FILE, serving
from tests.helpers.ports import a_port
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import ROOT
from tests.webapp.telemetry.stream_server import a_server
from workers.metrics import serve

CONFIGURATION = ROOT / "deploy" / "prometheus.yml"
SECRET = "/run/secrets/metrics_token"
TOKEN = "a-token-of-sixteen"

pytestmark = [
    pytest.mark.large,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="prometheus is not installed: apt-get install prometheus",
    ),
]


def here(targets, token_file):
    """The file in `deploy/` with other addresses and another path of the secret, and often."""
    given = yaml.safe_load(CONFIGURATION.read_text().replace(SECRET, str(token_file)))
    given["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    jobs = []
    for job in given["scrape_configs"]:
        ports = [one["port"] for one in job.pop("dns_sd_configs", [])]
        ports += [int(one.rpartition(":")[2]) for group in job.pop("static_configs", [])
                  for one in group["targets"]]  # fmt: skip
        addresses = [f"127.0.0.1:{targets[port]}" for port in ports]
        jobs.append({**job, "static_configs": [{"targets": addresses}]})
    return {**given, "scrape_configs": jobs}


@contextmanager
def a_prometheus(folder, configuration):
    """Yields the address of a Prometheus with this configuration."""
    port = a_port()
    file, log = folder / "prometheus.yml", folder / "prometheus.log"
    file.write_text(yaml.safe_dump(configuration))
    command = [
        "prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        address = f"http://127.0.0.1:{port}"
        eventually(lambda: _is_ready(address), f"Prometheus, see {log}")
        yield address
    finally:
        process.terminate()
        process.wait(60 * patience())


def _is_ready(address):
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=30 * patience()) as answer:
            return answer.status == 200
    except OSError:
        return False


def value_of(address, query):
    """Returns the value of the first series of a query; None if there is none."""
    url = f"{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=30 * patience()) as answer:
        found = json.load(answer)["data"]["result"]
    return float(found[0]["value"][1]) if found else None


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
