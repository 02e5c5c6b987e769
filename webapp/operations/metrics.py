"""Metrics of the installation in the exposition of a web process, read when they are scraped.

Every web process shows the same figures: take the maximum over processes, not the sum. Where the
database does not answer, `grove_database_up` is 0 and they are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from django.db import Error
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from psycopg import Error as DriverError
from psycopg_pool import PoolTimeout

from webapp import __version__
from webapp.http.metrics import REGISTRY
from webapp.operations.figures import Figures, figures
from webapp.telemetry.stream.stream_slots import open_of_addresses

logger = logging.getLogger(__name__)


class Exposition(Collector):
    """Collects what a web process shows: its own metrics, and the figures that `read` returns."""

    def __init__(self, read: Callable[[], Figures] = figures):
        self._read = read

    def collect(self) -> Iterator[Metric]:
        yield from REGISTRY.collect()
        yield _labelled("grove_info", "Version.", ["version"], {__version__: 1})
        yield _gauge(
            "grove_streams", "Open event streams and websockets of this process.",
            open_of_addresses(),
        )  # fmt: skip
        try:
            found = self._read()
        except (Error, DriverError, PoolTimeout) as error:
            logger.warning("metrics without the database: %s", error)
            yield _gauge("grove_database_up", "Whether the database answers.", 0)
            return
        yield _gauge("grove_database_up", "Whether the database answers.", 1)
        yield from _families(found)


def _families(found: Figures) -> Iterator[Metric]:
    yield _labelled("grove_runs", "Runs by state.", ["state"], found.runs)
    for name, text, value in (
        ("grove_queue_runs", "Queued runs that wait for a worker.", found.queued),
        ("grove_queue_seconds", "Waiting time of the first queued run.", found.queued_seconds),
        ("grove_leases", "Active runs that a worker holds.", found.leases),
        ("grove_leases_lapsed", "Active runs that no worker holds.", found.lapsed),
        ("grove_heartbeat_seconds", "Age of the oldest heartbeat.", found.heartbeat_seconds),
        ("grove_artifacts", "Stored contents.", found.artifacts),
        ("grove_artifact_bytes", "Bytes of stored contents.", found.artifact_bytes),
        ("grove_upload_bytes", "Received bytes of unfinished uploads.", found.uploading_bytes),
        ("grove_quota_bytes", "Bytes that a project may store.", found.quota_bytes),
    ):
        yield _gauge(name, text, value)
    by_project = {str(project): size for project, size in found.project_bytes.items()}
    text = "Bytes that a project refers to, of the fullest ones."
    yield _labelled("grove_project_bytes", text, ["project"], by_project)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, labels: list[str], values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label, value in values.items():
        family.add_metric([label], value)
    return family
