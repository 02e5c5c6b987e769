"""Runs of external engines, which send their events: their lease, and how they end.

Invariants: no worker ever takes such a run. It has a lease like any other, which each batch of
events renews; a run whose engine is silent for `leases.EXTERNAL_LEASE_SECONDS` has failed.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from engine.config.schema import RunConfig
from engine.events.vocabulary import RunState
from engine.recipes import load_recipe
from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.datasets.references import is_reference, trainable
from webapp.experiments import services
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.models import Experiment, Run, RunAction
from webapp.experiments.run_settings.paths import refuse_cluster
from webapp.experiments.scheduling import leases
from webapp.experiments.scheduling.queue import admit
from webapp.experiments.scheduling.states import ENDED
from webapp.projects.models import Project


class NotExternalRun(Exception):
    """Raised when the site's own engine has the run: its worker ships the events."""


class Ended(Exception):
    """Raised when the run has ended; it accepts no more events unless it is resumed."""


@transaction.atomic
def create_run(
    project: Project, user: User, recipe: str, overrides: dict[str, Any], name: str
) -> Run:
    """Creates an experiment with a run that an external engine is about to start.

    Raises:
        ConfigError: the settings cannot run, or name a Ray cluster: the site's own engine may later
            read the settings of such a run.
        NotNow: too many runs are queued or running (`queue.admit`).
    """
    config = load_recipe(recipe, overrides)
    refuse_cluster(config)
    admit(project, user)
    requested = {"recipe": recipe, "overrides": overrides}
    experiment = Experiment.objects.create(
        project=project, name=name or recipe, created_by=user, config=requested
    )
    run = Run.objects.create(
        experiment=experiment,
        number=1,
        config=config.model_dump(mode="json"),
        seed=config.seed,
        steps=config.training.steps,
        outside=True,
        dataset_version=_dataset_version(project, config),
        created_by=user,
        queued_at=timezone.now(),
    )
    note_action(run, user, RunAction.Kind.STARTED, "on an external engine")
    return services.mark_starting(run.pk, leases.take_external_lease(run.pk))


def _dataset_version(project: Project, config: RunConfig) -> DatasetVersion | None:
    dataset = config.problems.dataset
    return trainable(project, dataset) if is_reference(dataset) else None


def locked(run_id: uuid.UUID) -> Run:
    """Returns the run's row, locked. Raises `NotExternalRun` if the site's own engine has it."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if not run.outside:
        raise NotExternalRun
    return run


def record_contact(run: Run, reported: tuple[RunState, str] | None) -> None:
    """Renews the lease; `reported` is the state that the engine reported last, with its reason."""
    leases.renew_lease(run.pk, run.fencing, leases.EXTERNAL_LEASE_SECONDS)
    state, reason = reported or (None, "")
    if state is RunState.FINISHED:
        services.mark_finished(run.pk, run.fencing)
    elif state is RunState.STOPPED:
        services.mark_stopped(run.pk, run.fencing)
    elif state is RunState.FAILED:
        services.mark_failed(run.pk, run.fencing, reason.replace("\0", "\ufffd"))


def fail_silent_runs() -> int:
    """Fails the runs whose external engine was silent for too long; returns their number."""
    silent = Run.objects.filter(outside=True, lease_expires__lt=Now())
    lost = list(silent.exclude(state__in=ENDED).values_list("pk", "fencing", "tracked"))
    minutes = f"{leases.EXTERNAL_LEASE_SECONDS / 60:.0f} minutes"
    for run_id, fencing, tracked in lost:
        who = "program that logs it" if tracked else "external engine"
        services.mark_failed(run_id, fencing, f"the {who} sent no events for {minutes}")
    return len(lost)
