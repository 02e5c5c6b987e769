"""Metrics of one worker for Prometheus: its jobs, its runs, what it ships.

Invariants: they are served only with `GROVE_METRICS_TOKEN` and `GROVE_WORKER_METRICS`, and the
former is required of every reader. A failure of this server never ends the worker. Of runs only
those at work are labels.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import Counter, Histogram, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine.config.deadlines import METRICS_READER
from engine.events.vocabulary import Event, Verdict
from webapp.http.metrics import REGISTRY, may_read
from workers.settings import metrics_address

logger = logging.getLogger(__name__)

jobs = Histogram(
    "grove_job_seconds",
    "Seconds of one item of a job.",
    ["job"],
    buckets=(0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200),
    registry=REGISTRY,
)
job_failures = Counter(
    "grove_job_failures", "Items of jobs that failed.", ["job"], registry=REGISTRY
)
ended = Counter("grove_runs_ended", "Runs that ended here, by state.", ["state"], registry=REGISTRY)
_lag = Histogram(
    "grove_ingest_lag_seconds",
    "Age of the newest event of a batch when it was stored.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300),
    registry=REGISTRY,
)
_events = Counter("grove_ingest_events", "Events stored.", registry=REGISTRY)
_verdicts = Counter(
    "grove_sandbox_verdicts", "Verdicts of the sandbox in stored events.", ["verdict"],
    registry=REGISTRY,
)  # fmt: skip
_VERDICTS = frozenset(verdict.value for verdict in Verdict)


def count_stored(events: Iterable[Event]) -> None:
    """Records events that were just stored, oldest first."""
    last = None
    for last in events:
        _events.inc()
        if last.kind == "node.close":
            verdict = last.payload.get("verdict")
            _verdicts.labels(verdict if verdict in _VERDICTS else "other").inc()
    if last is not None:
        _lag.observe(max(0.0, time.time() - last.time))


class RunsAtWork(Collector):
    """Collects the runs that this worker supervises."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        from workers.runs.active_runs import active_supervisors

        families = {
            "heartbeat_seconds": "Seconds since the worker renewed the run's lease.",
            "unshipped_bytes": "Bytes of the run's log that are not stored yet.",
        }
        at_work = [(str(one.run_id), one.vital_signs()) for one in active_supervisors()]
        for name, text in families.items():
            family = GaugeMetricFamily(f"grove_run_{name}", text, labels=["run"])
            for run, signs in at_work:
                family.add_metric([run], signs[name])
            yield family


REGISTRY.register(RunsAtWork())


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(METRICS_READER.seconds)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs no request: there is one every few seconds."""


class _Server(ThreadingWSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a reader of metrics left", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


def serve() -> WSGIServer | None:
    """Serves the metrics in threads of this process; returns None if they are off, or if the
    address cannot be used, which is logged."""
    address = metrics_address()
    if address is None:
        return None
    host, port = address
    try:
        kind = _Server6 if ":" in host else _Server
        server = make_server(host, port, _guarded, kind, _Handler)
    except OSError as error:
        logger.error("GROVE_WORKER_METRICS = %s:%s cannot be used: %s", host, port, error)
        return None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


_exposition = make_wsgi_app(REGISTRY)


def _guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"] != "/metrics" or not may_read(environ.get("HTTP_AUTHORIZATION", "")):
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"Not found\n"]
    return _exposition(environ, start_response)
