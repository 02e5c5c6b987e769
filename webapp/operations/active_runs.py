"""Active runs: who holds them, how old their heartbeat and their newest stored event are."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Now
from django.utils import timezone

from engine.config.deadlines import RUN_LEASE
from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD
from webapp.telemetry.models import Event

SHOWN = 50
_TIER = re.compile(r"programs run behind the (\w+) tier")
UNSAFE = "sandbox.allow_unsafe"


@dataclass(frozen=True, slots=True)
class ActiveRun:
    id: uuid.UUID
    name: str
    """Empty if it is in no project that the reader sees."""
    workspace: str
    state: str
    worker: str
    """Who holds its lease; empty if nobody does."""
    engine_pid: int | None
    heartbeat_seconds: float | None
    """Since its lease was renewed; None without a lease, and of an external engine."""
    lag_seconds: float | None
    """Age of its newest stored event; None before the first."""
    tier: str
    """Of the sandbox, as its engine reported it: full, restricted or none; empty before that."""


def read_runs(user: User) -> list[ActiveRun]:
    """Reads the active runs, the oldest first, at most `SHOWN`."""
    newest = Event.objects.filter(run=OuterRef("pk"), seq=OuterRef("head_seq")).values("time")[:1]
    lines = Event.objects.filter(run=OuterRef("pk"), kind="log.line").filter(
        Q(payload__message__startswith="programs run behind the ")
        | Q(payload__message__startswith=UNSAFE)
    )
    tier = lines.order_by("-seq").annotate(line=KT("payload__message")).values("line")[:1]
    runs = (
        Run.objects.filter(state__in=HELD)
        .select_related("experiment__project__workspace")
        .defer("config", "given", "notes", "experiment__config")
        .annotate(
            newest=Subquery(newest),
            tier=Subquery(tier),
            renewed=F("lease_expires") - timedelta(seconds=RUN_LEASE.seconds),
            now=Now(),
        )
        .order_by("started_at", "pk")[:SHOWN]
    )
    chosen = list(runs)
    visible = set(
        Run.objects.visible_to(user)
        .filter(pk__in=[run.pk for run in chosen])
        .values_list("pk", flat=True)
    )
    return [_row(run, run.pk in visible) for run in chosen]


def _row(run: Run, is_visible: bool) -> ActiveRun:
    held = run.lease_expires is not None and not run.outside
    return ActiveRun(
        id=run.pk,
        name=str(run) if is_visible else "",
        workspace=str(run.project.workspace),
        state=run.state,
        worker=run.lease_owner,
        engine_pid=run.engine_pid,
        heartbeat_seconds=_age(run.renewed, run.now) if held else None,
        lag_seconds=_age(run.newest, timezone.now()),
        tier=tier_in(run.tier or ""),
    )


def tier_in(message: str) -> str:
    """The tier that an engine's log line names; empty if it names none."""
    if message.startswith(UNSAFE):
        return "none"
    match = _TIER.match(message)
    return match[1] if match else ""


def _age(moment: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - moment).total_seconds()) if moment else None
