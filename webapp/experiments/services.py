"""Transitions of a run's state: one function each, one transaction each.

Invariant: `Run.state` is written nowhere else, except for starting -> running, which follows the
engine's own event in the transaction that stores it (`telemetry.ingest.projections`). Each change
is checked against `states.ALLOWED` under the row's lock and announced on commit; a worker's changes
are fenced as well. The user who requests a change is recorded with it.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import connection, transaction
from django.dispatch import Signal
from django.utils import timezone

from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.models import Run, RunAction
from webapp.experiments.scheduling.dispatch import dispatch_on_commit
from webapp.experiments.scheduling.leases import lock_leased, take_external_lease
from webapp.experiments.scheduling.queue import admit
from webapp.experiments.scheduling.states import ResumedElsewhere, check
from webapp.server_paths import relative

CHANNEL = "grove_events"
"""Channel that the web processes listen to; the payload is the run's id."""
run_changed = Signal()
"""Sent by `Run` with the `run` after a transition, in its transaction: what a receiver writes is
committed with it or not at all."""


@transaction.atomic
def resume_run(run_id: uuid.UUID, by: User | None = None) -> Run:
    """Queues a stopped or failed run, to continue from its last checkpoint.

    Raises:
        TransitionRefused: it has not ended, or has finished.
        ResumedElsewhere: another program logs it.
        NotNow: its project, or its creator, has too many runs queued or active.
    """
    run = Run.objects.get(pk=run_id)
    if run.tracked:
        raise ResumedElsewhere
    run = _queue_again(run_id, by)
    if run.outside:
        return mark_starting(run.pk, take_external_lease(run.pk))
    dispatch_on_commit(run.pk)
    return run


@transaction.atomic
def reopen_tracked(run_id: uuid.UUID, by: User) -> Run:
    """Marks a tracked run that has ended, finished ones included, as starting: the program that
    logs it has more to say. Raises as `resume_run`."""
    run = _queue_again(run_id, by)
    return mark_starting(run.pk, take_external_lease(run.pk))


def _queue_again(run_id: uuid.UUID, by: User | None) -> Run:
    run = Run.objects.select_related("experiment__project", "created_by").get(pk=run_id)
    check(run.run_state, RunState.QUEUED, tracked=run.tracked)
    admit(run.project, run.created_by)
    run = _locked(run_id)
    _change(
        run,
        RunState.QUEUED,
        queued_at=timezone.now(),
        dispatched_at=None,
        finished_at=None,
        stop_requested=False,
        kill_requested=False,
        error="",
    )
    note_action(run, by, RunAction.Kind.RESUMED)
    return run


@transaction.atomic
def request_stop(run_id: uuid.UUID, by: User | None = None) -> Run:
    """Stops a run that no worker has taken immediately; records a stop request for any other.

    Idempotent.
    """
    run = _locked(run_id)
    if run.run_state is not RunState.STOPPING:
        _request_end(run)
        note_action(run, by, RunAction.Kind.STOPPED)
    return run


@transaction.atomic
def request_kill(run_id: uuid.UUID, by: User | None = None) -> Run:
    """As `request_stop`, but the engine gets no time for a checkpoint. Idempotent."""
    run = _locked(run_id)
    if run.run_state is not RunState.STOPPING:
        _request_end(run)
    if not run.kill_requested and run.run_state is not RunState.STOPPED:
        run.kill_requested = True
        run.save(update_fields=["kill_requested"])
    note_action(run, by, RunAction.Kind.KILLED)
    return run


def _request_end(run: Run) -> None:
    if run.run_state is RunState.QUEUED and not run.lease_owner:
        _change(run, RunState.STOPPED, stop_requested=True, finished_at=timezone.now())
    elif run.run_state is RunState.QUEUED:
        # A worker has just taken it and will receive the request when it renews its lease.
        run.stop_requested = True
        run.save(update_fields=["stop_requested"])
        announce(run.pk)
    else:
        _change(run, RunState.STOPPING, stop_requested=True)


@transaction.atomic
def set_priority(run_id: uuid.UUID, priority: int, by: User | None = None) -> Run:
    """Sets the priority: of a workspace's queued runs those of higher priority start first; an
    active run keeps it for the next time that it is queued."""
    run = _locked(run_id)
    before, run.priority = run.priority, priority
    if before != priority:
        run.save(update_fields=["priority"])
        note_action(run, by, RunAction.Kind.PRIORITY, f"from {before} to {priority}")
    return run


def write_note(run_id: uuid.UUID, text: str, by: User) -> Run:
    """Records a user's note on the run."""
    run = Run.objects.get(pk=run_id)
    note_action(run, by, RunAction.Kind.NOTE, text)
    return run


@transaction.atomic
def mark_starting(run_id: uuid.UUID, fencing: int) -> Run:
    """Marks the run as starting: the worker that holds the lease is about to start the engine."""
    run = lock_leased(run_id, fencing)
    started = run.started_at or timezone.now()
    _change(run, RunState.STARTING, started_at=started, error="", engine_pid=None)
    return run


@transaction.atomic
def record_engine(run_id: uuid.UUID, fencing: int, pid: int, started: float) -> None:
    """Records the process of the run's engine: its pid and its start time in Unix seconds."""
    run = lock_leased(run_id, fencing)
    run.engine_pid, run.engine_started = pid, started
    run.save(update_fields=["engine_pid", "engine_started"])


@transaction.atomic
def mark_finished(run_id: uuid.UUID, fencing: int) -> Run:
    """Marks the run as finished: the engine completed it, and its results are registered."""
    return _end(lock_leased(run_id, fencing), RunState.FINISHED)


@transaction.atomic
def mark_stopped(run_id: uuid.UUID, fencing: int) -> Run:
    """Marks the run as stopped: the engine ended on request; the run can be resumed."""
    return _end(lock_leased(run_id, fencing), RunState.STOPPED)


@transaction.atomic
def mark_failed(run_id: uuid.UUID, fencing: int, error: str) -> Run:
    """Marks the run as failed: the engine ended by itself. An error that it reported before is the
    first cause and is kept."""
    run = lock_leased(run_id, fencing)
    return _end(run, RunState.FAILED, error=run.error or relative(error))


def announce(run_id: uuid.UUID) -> None:
    """Wakes the run's watchers once the current transaction is committed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(run_id)])


def _end(run: Run, state: RunState, **changes: Any) -> Run:
    return _change(
        run,
        state,
        finished_at=timezone.now(),
        engine_pid=None,
        engine_started=None,
        waiting_name="",
        waiting_since=None,
        waiting_deadline=None,
        lease_owner="",
        lease_expires=None,
        **changes,
    )


def _locked(run_id: uuid.UUID) -> Run:
    return Run.objects.select_for_update(no_key=True).get(pk=run_id)


def _change(run: Run, state: RunState, **changes: Any) -> Run:
    check(run.run_state, state, tracked=run.tracked)
    changes["state"] = state.value
    for name, value in changes.items():
        setattr(run, name, value)
    run.save(update_fields=list(changes))
    announce(run.pk)
    run_changed.send(sender=Run, run=run)
    return run
