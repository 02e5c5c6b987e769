"""The lease on a run: at most one worker owns it at any moment.

Invariants: the fencing token grows with every lease that is taken, and whatever a worker writes
about a run is checked against it under the row's lock, so a worker that lost its lease can
change nothing. Time is the database's, never a machine's own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from engine.events.vocabulary import RunState
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD

OUTSIDE_SECONDS = 900.0
"""How long an engine elsewhere may be silent; its events renew the lease."""
_OUTSIDE = "an engine elsewhere"


class LeaseLost(Exception):
    """Somebody else holds the run now, or nobody does: stop working on it at once."""

    def __init__(self, run_id: uuid.UUID, fencing: int):
        super().__init__(f"run {run_id}: the lease with fencing token {fencing} is gone")


@dataclass(frozen=True, slots=True)
class Orders:
    """What the row asks of the worker that holds it."""

    stop_requested: bool
    kill_requested: bool


def unheld() -> Q:
    """Runs that no worker holds: without a lease, or with one that lapsed."""
    return Q(lease_expires=None) | Q(lease_expires__lt=Now())


@transaction.atomic
def take_lease(run_id: uuid.UUID, owner: str, seconds: float) -> int | None:
    """The fencing token of a new lease, or None if there is nothing to take.

    A run can be taken when it is queued, or when it is starting, running or stopping and its
    lease lapsed or was given back.
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


def take_lease_outside(run_id: uuid.UUID) -> int:
    """The fencing token of a lease on a queued run that an engine elsewhere holds from now on."""
    return take_lease(run_id, _OUTSIDE, OUTSIDE_SECONDS)


def renew_lease(run_id: uuid.UUID, fencing: int, seconds: float) -> Orders:
    """Keep the lease for `seconds` more, and hear what is asked.

    Raises:
        LeaseLost: the token is no longer the run's.
    """
    # A lease that lapsed without being taken by anybody is still ours.
    renewed = Run.objects.filter(pk=run_id, fencing=fencing).exclude(lease_expires=None)
    if not renewed.update(lease_expires=Now() + timedelta(seconds=seconds)):
        raise LeaseLost(run_id, fencing)
    return Orders(*Run.objects.values_list("stop_requested", "kill_requested").get(pk=run_id))


def release(run_id: uuid.UUID, fencing: int) -> None:
    """Give the lease back; nothing happens if it is no longer ours."""
    Run.objects.filter(pk=run_id, fencing=fencing).update(lease_owner="", lease_expires=None)


def release_all(owner: str) -> int:
    """Give back what a worker held that is known to have ended, so that its successor need not wait
    until it lapses; how many leases that were."""
    held = Run.objects.filter(lease_owner=owner).exclude(lease_expires=None)
    return held.update(lease_owner="", lease_expires=None)


def lock_leased(run_id: uuid.UUID, fencing: int) -> Run:
    """The run's row, locked until the transaction ends, if `fencing` still holds its lease.

    Raises:
        LeaseLost: the token is no longer the run's.
    """
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None or run.fencing != fencing or run.lease_expires is None:
        raise LeaseLost(run_id, fencing)
    return run
