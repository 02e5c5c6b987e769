"""Every change of a run's state: one function per transition, one transaction each.

Invariant: `Run.state` is written nowhere else, but for starting -> running, which follows the
engine's own event in the transaction that stores it (`telemetry.projections`). Each change is
checked against `states.ALLOWED` under the row's lock and announced on commit; those that a
worker makes are fenced too.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Max
from django.utils import timezone

from engine.config import RunConfig
from engine.events import RunState
from engine.recipes import load_recipe
from webapp.accounts.models import User
from webapp.datasets.services import version_of
from webapp.experiments.dispatch import dispatch_on_commit
from webapp.experiments.leases import lock_leased, take_lease_outside
from webapp.experiments.models import Experiment, Run
from webapp.experiments.paths import refuse_paths
from webapp.experiments.states import check
from webapp.experiments.walls import refuse_unsafe
from webapp.projects.models import Project


class KeyReused(Exception):
    """An idempotency key that stands for another request already."""


CHANNEL = "grove_events"
"""What the web processes listen to; the payload is the run's id."""


@transaction.atomic
def create_experiment_with_run(
    project: Project, user: User, recipe: str, overrides: dict[str, Any], name: str
) -> Run:
    """An experiment with its first run, queued.

    Raises:
        ConfigError: the settings cannot run; nothing was made.
    """
    config = load_recipe(recipe, overrides)
    refuse_unsafe(config, project)
    refuse_paths(config, project)
    experiment = Experiment.objects.create(
        project=project,
        name=name or recipe,
        created_by=user,
        config={"recipe": recipe, "overrides": overrides},
    )
    return _create_run(experiment, user, config)


def create_once(
    key: str | None,
    make: Callable[..., Run],
    project: Project,
    user: User,
    recipe: str,
    overrides: dict[str, Any],
    name: str,
) -> Run:
    """As `make` of the rest; asked again under the same key, the run that was made then.

    Raises:
        KeyReused: `user` gave this key with another request.
    """
    if key is None:
        return make(project, user, recipe, overrides, name)
    asked = json.dumps([make.__name__, project.pk, recipe, overrides, name], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()
    if found := _made_before(user, key, digest):
        return found
    try:
        with transaction.atomic():
            run = make(project, user, recipe, overrides, name)
            made = Experiment.objects.filter(pk=run.experiment_id)
            made.update(request_key=key, request_digest=digest)
            return run
    except IntegrityError:
        # Somebody asked the same at the same moment, and was first.
        if found := _made_before(user, key, digest):
            return found
        raise


def _made_before(user: User, key: str, digest: str) -> Run | None:
    made = Experiment.objects.filter(created_by=user, request_key=key).first()
    if made is None:
        return None
    if made.request_digest != digest:
        raise KeyReused
    return made.runs.get(number=1)


def _create_run(experiment: Experiment, user: User, config: RunConfig) -> Run:
    last = experiment.runs.aggregate(last=Max("number"))["last"] or 0
    run = Run.objects.create(
        experiment=experiment,
        number=last + 1,
        config=config.model_dump(mode="json"),
        seed=config.seed,
        steps=config.training.steps,
        dataset_version=version_of(experiment.project, config.problems),
        created_by=user,
        queued_at=timezone.now(),
    )
    dispatch_on_commit(run.pk)
    return run


@transaction.atomic
def resume_run(run_id: uuid.UUID) -> Run:
    """A stopped or failed run goes back to the queue, to continue from its last checkpoint."""
    run = _locked(run_id)
    _change(
        run,
        RunState.QUEUED,
        queued_at=timezone.now(),
        dispatched_at=None,
        finished_at=None,
        stop_requested=False,
        error="",
    )
    if run.outside:
        return mark_starting(run.pk, take_lease_outside(run.pk))
    dispatch_on_commit(run.pk)
    return run


@transaction.atomic
def request_stop(run_id: uuid.UUID) -> Run:
    """A run that no worker has taken yet stops at once; any other is asked to.

    Asking twice is no error.
    """
    run = _locked(run_id)
    if run.run_state is RunState.STOPPING:
        return run
    if run.run_state is RunState.QUEUED and not run.lease_owner:
        _change(run, RunState.STOPPED, stop_requested=True, finished_at=timezone.now())
    elif run.run_state is RunState.QUEUED:
        # A worker has just taken it and will hear of the wish when it renews its lease.
        run.stop_requested = True
        run.save(update_fields=["stop_requested"])
        announce(run.pk)
    else:
        _change(run, RunState.STOPPING, stop_requested=True)
    return run


@transaction.atomic
def mark_starting(run_id: uuid.UUID, fencing: int) -> Run:
    """The worker that holds the lease is about to start the engine."""
    run = lock_leased(run_id, fencing)
    started = run.started_at or timezone.now()
    _change(run, RunState.STARTING, started_at=started, error="", engine_pid=None)
    return run


@transaction.atomic
def record_engine(run_id: uuid.UUID, fencing: int, pid: int, started: float) -> None:
    """Which process is the run's engine: its pid and its start time in Unix seconds."""
    run = lock_leased(run_id, fencing)
    run.engine_pid, run.engine_started = pid, started
    run.save(update_fields=["engine_pid", "engine_started"])


@transaction.atomic
def mark_finished(run_id: uuid.UUID, fencing: int) -> Run:
    """The engine did all it was asked to, and its results are registered."""
    return _end(lock_leased(run_id, fencing), RunState.FINISHED)


@transaction.atomic
def mark_stopped(run_id: uuid.UUID, fencing: int) -> Run:
    """The engine ended on request; the run can be resumed."""
    return _end(lock_leased(run_id, fencing), RunState.STOPPED)


@transaction.atomic
def mark_failed(run_id: uuid.UUID, fencing: int, error: str) -> Run:
    """The engine ended by itself. An error that it reported before is the first cause: it stays."""
    run = lock_leased(run_id, fencing)
    return _end(run, RunState.FAILED, error=run.error or error)


def announce(run_id: uuid.UUID) -> None:
    """Wake whoever watches the run, once the transaction under way is committed."""
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
    check(run.run_state, state)
    changes["state"] = state.value
    for name, value in changes.items():
        setattr(run, name, value)
    run.save(update_fields=list(changes))
    announce(run.pk)
    return run
