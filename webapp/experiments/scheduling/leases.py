"""Lease on a run: at most one worker owns it at any moment.

Invariants: the fencing token grows with every lease that is taken, and every write of a worker to a
run is checked against it under the row's lock, so a worker that lost its lease can change nothing.
Time is the database's, never a machine's own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from engine.config.deadlines import RUN_LEASE
from engine.events.vocabulary import RunState
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD

EXTERNAL_LEASE_SECONDS = 900.0
"""Longest silence of an external engine; its events renew the lease."""
_EXTERNAL_OWNER = "an external engine"


class LeaseLost(Exception):
    """Raised when another worker, or none, holds the run: stop working on it immediately."""

    def __init__(self, run_id: uuid.UUID, fencing: int):
        super().__init__(
            f"run {run_id}: the lease with fencing token {fencing} is lost; {RUN_LEASE.remedy}"
        )


@dataclass(frozen=True, slots=True)
class Orders:
    """Requests of the row to the worker that holds it."""

    stop_requested: bool
    kill_requested: bool


def unheld() -> Q:
    """Returns the condition of runs that no worker holds: no lease, or a lapsed one."""
    return Q(lease_expires=None) | Q(lease_expires__lt=Now())


@transaction.atomic
def take_lease(run_id: uuid.UUID, owner: str, seconds: float) -> int | None:
    """Returns the fencing token of a new lease, or None if the run cannot be taken.

    A run can be taken when it is queued, or when it is starting, running or stopping and its lease
    lapsed or was released.
    """
    run = (
        Run.objects.select_for_update(no_key=True)
        .filter(unheld(), pk=run_id, state__in={RunState.QUEUED, *HELD})
        .first()
    )
    if run is None:
        return None
    Run.objects.filter(pk=run_id).update(
        lease_owner=owner,
        lease_expires=Now() + timedelta(seconds=seconds),
        fencing=run.fencing + 1,
        restarts=run.restarts + (run.state != RunState.QUEUED),
    )
    return run.fencing + 1


def take_external_lease(run_id: uuid.UUID) -> int:
    """Returns the fencing token of an external engine's new lease on a queued run."""
    return take_lease(run_id, _EXTERNAL_OWNER, EXTERNAL_LEASE_SECONDS)


def replace_external_lease(run_id: uuid.UUID) -> int:
    """Returns the fencing token of the lease of another process, which continues a run that is not
    over. The caller holds the run's row lock."""
    run = Run.objects.get(pk=run_id)
    Run.objects.filter(pk=run_id).update(
        lease_owner=_EXTERNAL_OWNER,
        lease_expires=Now() + timedelta(seconds=EXTERNAL_LEASE_SECONDS),
        fencing=run.fencing + 1,
        restarts=run.restarts + 1,
    )
    return run.fencing + 1


def renew_lease(run_id: uuid.UUID, fencing: int, seconds: float) -> Orders:
    """Extends the lease by `seconds` from now and returns the pending requests.

    Raises:
        LeaseLost: the token is no longer the run's.
    """
    # A lapsed lease that no other worker has taken is still held.
    renewed = Run.objects.filter(pk=run_id, fencing=fencing).exclude(lease_expires=None)
    if not renewed.update(lease_expires=Now() + timedelta(seconds=seconds)):
        raise LeaseLost(run_id, fencing)
    return Orders(*Run.objects.values_list("stop_requested", "kill_requested").get(pk=run_id))


def release(run_id: uuid.UUID, fencing: int) -> None:
    """Releases the lease; does nothing if the token is no longer the run's."""
    Run.objects.filter(pk=run_id, fencing=fencing).update(lease_owner="", lease_expires=None)


def release_all(owner: str) -> int:
    """Releases the leases of a worker that is known to have ended, so that its successor need not
    wait until they lapse; returns their number."""
    held = Run.objects.filter(lease_owner=owner).exclude(lease_expires=None)
    return held.update(lease_owner="", lease_expires=None)


def lock_leased(run_id: uuid.UUID, fencing: int) -> Run:
    """Returns the run's row, locked until the transaction ends, if `fencing` still holds its lease.

    Raises:
        LeaseLost: the token is no longer the run's.
    """
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None or run.fencing != fencing or run.lease_expires is None:
        raise LeaseLost(run_id, fencing)
    return run
