"""A real Prometheus, of Debian's package, with the configuration of `deploy/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest
import yaml

from tests.helpers.ports import a_port
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import ROOT

CONFIGURATION = ROOT / "deploy" / "prometheus.yml"
SECRET = "/run/secrets/metrics_token"

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")) and not os.environ.get("CI"),
    reason="prometheus is not installed (apt-get install prometheus)",
)


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
