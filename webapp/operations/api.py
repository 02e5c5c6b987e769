"""REST of the operations page: what operators see of the installation."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema

from webapp.accounts.authentication import require_person
from webapp.alerts.operators import is_operator
from webapp.operations import overview

router = Router()


class ProcessOut(Schema):
    kind: str
    version: str
    host: str
    pid: int
    connections: int
    busy: int
    since: datetime


class ActiveRunOut(Schema):
    id: uuid.UUID
    name: str
    """Empty if you do not see its project."""
    workspace: str
    state: str
    worker: str
    engine_pid: int | None
    heartbeat_seconds: float | None
    lag_seconds: float | None
    """Age of its newest stored event."""
    tier: str
    """Of the sandbox: full, restricted or none; empty before its engine reported it."""


class ProjectBytes(Schema):
    project: int
    bytes: int


class StorageOut(Schema):
    """Sizes are bytes."""

    disk_free: int
    disk_size: int
    database: int
    artifacts: int
    artifact_bytes: int
    uploading_bytes: int
    quota: int
    fullest: list[ProjectBytes]


class SlowQueryOut(Schema):
    seconds: float
    calls: int
    text: str
    process: str


class OperationsOut(Schema):
    """A part that cannot be read is null, and named in `errors`."""

    checks: dict[str, str] | None
    """`ok` or `failing` by name, of this process."""
    runs_by_state: dict[str, int] | None
    queued: int | None
    queued_seconds: float | None
    """Waiting time of the first queued run."""
    leases: int | None
    leases_lapsed: int | None
    processes: list[ProcessOut] | None
    other_connections: int | None
    runs: list[ActiveRunOut] | None
    storage: StorageOut | None
    slow_now: list[SlowQueryOut] | None
    slow_by_mean: list[SlowQueryOut] | None
    """Null also where Postgres has no working pg_stat_statements."""
    errors: dict[str, str]


@router.get("", response=OperationsOut)
def get_operations(request: HttpRequest):
    """Returns processes, queue, leases, lag, storage, sandbox tier and slow queries of the whole
    installation; for its operators, without a token."""
    require_operator(request)
    return _body(overview.read(request.user))


def require_operator(request: HttpRequest) -> None:
    """Raises `Http404` unless the person who sent the request is an operator."""
    require_person(request.user)
    if not is_operator(request.user):
        raise Http404


def _body(parts: dict[str, overview.Part]) -> dict[str, Any]:
    figures, storage = parts["figures"].value, parts["storage"].value
    processes, others = parts["processes"].value or (None, None)
    return {
        "checks": parts["checks"].value,
        "runs_by_state": figures and figures.runs,
        **{name: getattr(figures, name, None) for name in ("queued", "queued_seconds", "leases")},
        "leases_lapsed": figures and figures.lapsed,
        "processes": processes,
        "other_connections": others,
        "runs": parts["runs"].value,
        "storage": storage
        and asdict(storage)
        | {"fullest": [{"project": pk, "bytes": size} for pk, _, size in storage.fullest]},
        "slow_now": parts["running"].value,
        "slow_by_mean": parts["counted"].value,
        "errors": {name: part.error for name, part in parts.items() if part.error},
    }
