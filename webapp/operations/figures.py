"""Figures of the whole installation, each from one query over few rows.

Invariant: they are read at most once in `KEPT_SECONDS` per process, however often they are shown.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.conf import settings
from django.db.models import Count, F, Min, Q, Sum
from django.utils import timezone

from engine.config.deadlines import RUN_LEASE
from engine.events.vocabulary import RunState
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import references
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD

T = TypeVar("T")

KEPT_SECONDS = 5.0
FULLEST_SECONDS = 60.0
"""The same for bytes by project, which read every reference."""
FULLEST = 20
"""Projects whose bytes are shown: more labels than that are not worth their cost."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Times are seconds, sizes bytes."""

    runs: dict[str, int]
    """Runs by state; every state is there."""
    queued: int
    """Runs that wait for a worker."""
    queued_seconds: float
    """For how long the first of them has waited; 0 if none does."""
    leases: int
    """Active runs that a worker holds."""
    lapsed: int
    """Active runs that no worker holds although one should."""
    heartbeat_seconds: float
    """Age of the oldest heartbeat of a held run; 0 if none is held. Computed with this process's
    GROVE_RUN_LEASE_SECONDS, which should be the workers'."""
    artifacts: int
    artifact_bytes: int
    uploading_bytes: int
    """Received bytes of unfinished uploads."""
    project_bytes: dict[int, int]
    """Bytes that each of the fullest projects refers to, by its id."""
    quota_bytes: int


class _Kept(Generic[T]):
    """The value of a query for some seconds, read by one thread at a time."""

    def __init__(self, read: Callable[[], T], seconds: float):
        self._read, self._seconds = read, seconds
        self._lock = threading.Lock()
        self._value: tuple[float, T] | None = None

    def __call__(self) -> T:
        with self._lock:
            now = time.monotonic()
            if self._value is None or now - self._value[0] >= self._seconds:
                self._value = (now, self._read())
            return self._value[1]


def read() -> Figures:
    """Reads the figures now."""
    counts = dict(Run.objects.values_list("state").annotate(runs=Count("pk")).order_by())
    waiting = Run.objects.filter(state=RunState.QUEUED, outside=False).aggregate(
        runs=Count("pk"), since=Min("queued_at")
    )
    stored = Artifact.objects.aggregate(number=Count("pk"), size=Sum("size"))
    receiving = Upload.objects.filter(artifact=None).aggregate(size=Sum("received"))
    now = timezone.now()
    held = Q(lease_expires__gte=now)
    active = Run.objects.filter(state__in=HELD, outside=False).aggregate(
        held=Count("pk", filter=held),
        lapsed=Count("pk", filter=Q(lease_expires=None) | ~held),
        renewed=Min(F("lease_expires") - timedelta(seconds=RUN_LEASE.seconds), filter=held),
    )
    return Figures(
        runs={state.value: counts.get(state.value, 0) for state in RunState},
        queued=waiting["runs"],
        queued_seconds=_seconds_since(waiting["since"], now),
        leases=active["held"],
        lapsed=active["lapsed"],
        heartbeat_seconds=_seconds_since(active["renewed"], now),
        artifacts=stored["number"],
        artifact_bytes=stored["size"] or 0,
        uploading_bytes=receiving["size"] or 0,
        project_bytes=_fullest(),
        quota_bytes=settings.ARTIFACT_QUOTA_BYTES,
    )


def fullest_projects() -> dict[int, int]:
    """Returns the bytes that each of the fullest projects refers to, by its id; each content
    counts once."""
    sizes: dict[int, dict[str, int]] = defaultdict(dict)
    for key in references():
        rows = key.model._default_manager.all()
        columns = (f"{rows.project_path}__pk", key.attname, f"{key.name}__size")
        known = {f"{name}__isnull": False for name in (key.name, rows.project_path)}
        referred = rows.filter(**known).values_list(*columns).distinct()
        for project, sha256, size in referred.iterator():
            sizes[project][sha256] = size
    totals = {project: sum(contents.values()) for project, contents in sizes.items()}
    fullest = sorted(totals, key=lambda project: totals[project], reverse=True)[:FULLEST]
    return {project: totals[project] for project in fullest}


def _seconds_since(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0


figures = _Kept(read, KEPT_SECONDS)
_fullest = _Kept(fullest_projects, FULLEST_SECONDS)
