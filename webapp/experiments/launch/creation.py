"""Creation of experiments and their runs: from a recipe, as a clone, or as a fork of a checkpoint.

Invariant: an experiment is created with all of its runs, the settings, paths and data of each of
which are valid, or nothing is created.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.config.errors import ConfigError
from engine.config.run_forks import fork_errors
from webapp.accounts.models import User
from webapp.datasets.services import version_of
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.launch.checkpoints import checkpoint_steps, link_checkpoint, release
from webapp.experiments.launch.sweeps import Planned, Request, plan
from webapp.experiments.models import Experiment, Run, RunAction
from webapp.experiments.run_settings.bounds import refuse_beyond_machine
from webapp.experiments.run_settings.isolation import refuse_beyond_caps, refuse_unsafe
from webapp.experiments.run_settings.paths import located
from webapp.experiments.run_settings.registered_models import registered_models
from webapp.experiments.scheduling.dispatch import dispatch_on_commit
from webapp.experiments.scheduling.queue import admit
from webapp.experiments.scheduling.states import DoesNotFit, NotNow
from webapp.projects.models import Project

_NAME_CHARS: int = Experiment._meta.get_field("name").max_length


@dataclass(frozen=True)
class Origin:
    """Checkpoint that a fork starts from."""

    run: Run
    step: int


def planned(request: Request, project: Project, origin: Origin | None = None) -> list[Planned]:
    """Returns the runs that `create_experiment` would create.

    Raises:
        ConfigError: the settings cannot run, or not in this project, or not from this checkpoint.
    """
    base = request.base if request.base_is_located else None
    runs = [replace(run, config=located(run.config, project, base)) for run in plan(request)]
    for run in runs:
        refuse_unsafe(run.config, project)
        refuse_beyond_caps(run.config)
        refuse_beyond_machine(run.config)
        if origin:
            _refuse_fork(origin, run, project)
    return runs


def _refuse_fork(origin: Origin, run: Planned, project: Project) -> None:
    if origin.run.project != project:
        reason = f"a fork must be in its run's project, {origin.run.project}; or clone the run"
        raise ConfigError([{"path": "project", "value": project.name, "reason": reason}])
    if origin.step not in (available := checkpoint_steps(origin.run)):
        steps = ", ".join(map(str, available)) or "none"
        reason = f"there is no checkpoint of this step; there are {steps}"
        raise NotNow([{"path": "step", "value": origin.step, "reason": reason}])
    if problems := fork_errors(origin.run.config, run.config.model_dump(mode="json")):
        raise ConfigError(problems)


@transaction.atomic
def create_experiment(
    project: Project, user: User, request: Request, origin: Origin | None = None
) -> Experiment:
    """Creates an experiment with its runs, all queued.

    Raises:
        ConfigError: as `planned`, or the problems cannot be trained on; nothing was created.
        NotNow: these are more runs than may be queued or running (`queue.admit`).
    """
    runs = planned(request, project, origin)
    admit(project, user, len(runs))
    name = (request.name or request.recipe)[:_NAME_CHARS]
    experiment = Experiment.objects.create(
        project=project, name=name, created_by=user, config=request.to_config()
    )
    created = [
        _create_run(experiment, number, user, one, origin)
        for number, one in enumerate(runs, start=1)
    ]
    if origin:
        _link_checkpoints(origin, created)
    return experiment


@transaction.atomic
def create_from(
    project: Project, user: User, request: Request, source: Run, step: int | None
) -> Experiment:
    """Creates the experiment of `request`, whose base is the settings of `source`: a clone, or with
    `step` forks of its checkpoint. Records the action on the source.

    Raises:
        ConfigError: as `create_experiment`; nothing was created.
    """
    _refuse_search_or_evaluation(source)
    origin = None if step is None else Origin(source, step)
    request = replace(request, name=request.name or name_from(source, step))
    experiment = create_experiment(project, user, request, origin)
    if source.project == experiment.project:
        kind = RunAction.Kind.FORKED if origin else RunAction.Kind.CLONED
        where = f"from step {step}, " if origin else ""
        note_action(source, user, kind, f"{where}as {experiment}")
    return experiment


def _link_checkpoints(origin: Origin, forks: list[Run]) -> None:
    """Links the checkpoint into the forks' directories, so that their parent may remove its own."""
    if all(link_checkpoint(origin.run, origin.step, fork) for fork in forks):
        return
    for fork in forks:
        release(fork)
    reason = "the run has just removed this checkpoint; fork from a newer one"
    raise NotNow([{"path": "step", "value": origin.step, "reason": reason}])


def create_experiment_with_run(
    project: Project, user: User, recipe: str, overrides: dict[str, Any], name: str
) -> Run:
    """Creates an experiment of a single queued run.

    Raises:
        ConfigError: the settings cannot run; nothing was created.
    """
    return create_experiment(project, user, Request(recipe, overrides, name)).runs.get()


def _create_run(
    experiment: Experiment, number: int, user: User, one: Planned, origin: Origin | None
) -> Run:
    config = one.config
    run = Run.objects.create(
        experiment=experiment,
        number=number,
        config=config.model_dump(mode="json"),
        given=one.given,
        variant=one.variant,
        parent=origin and origin.run,
        parent_step=origin and origin.step,
        seed=config.seed,
        steps=config.training.steps,
        dataset_version=version_of(experiment.project, config.problems),
        created_by=user,
        queued_at=timezone.now(),
    )
    detail = f"from step {origin.step} of {origin.run}" if origin else ""
    note_action(run, user, RunAction.Kind.STARTED, detail)
    registered_models().note_uses(run)
    dispatch_on_commit(run.pk)
    return run


def name_from(run: Run, step: int | None) -> str:
    """Returns the default name of a clone of the run, or with `step` of a fork."""
    return f"{run.experiment.name}, " + ("again" if step is None else f"from step {step}")


def request_from(run: Run, **fields: Any) -> Request:
    """Returns a request whose base is the settings of `run`; `fields` are fields of `Request`.

    Raises:
        DoesNotFit: another program logs the run.
    """
    if run.tracked:
        reason = "another program logs this run, and Grove has no settings of it to start from"
        raise DoesNotFit([{"path": "source", "value": str(run), "reason": reason}])
    base = {"base": run.config, "given": run.given, "base_is_located": not run.outside}
    return Request(recipe=run.config["recipe"], **base, **fields)


def clone_request(run: Run, name: str = "") -> Request:
    """Returns a request for the same settings: the recipe's, with the run's overrides."""
    name = name or name_from(run, None)
    return request_from(run, name=name)


def fork_request(run: Run, step: int, overrides: dict[str, Any], name: str = "") -> Request:
    """Returns a request for the run's settings with changes, from its checkpoint of `step`."""
    name = name or name_from(run, step)
    return request_from(run, overrides=overrides, name=name)


@transaction.atomic
def clone_run(run: Run, user: User) -> Run:
    """Creates an experiment with the run's settings, queued.

    Raises:
        ConfigError: the settings cannot run any more, or it is a search; nothing was created.
    """
    _refuse_search_or_evaluation(run)
    clone = create_experiment(run.project, user, clone_request(run)).runs.get()
    note_action(run, user, RunAction.Kind.CLONED, f"as {clone}")
    return clone


@transaction.atomic
def fork_run(run: Run, step: int, user: User, overrides: dict[str, Any], name: str = "") -> Run:
    """Creates an experiment whose run starts at a checkpoint of this one, queued.

    Raises:
        ConfigError: there is no such checkpoint, or a change does not fit it; nothing was created.
    """
    _refuse_search_or_evaluation(run)
    request = fork_request(run, step, overrides, name)
    fork = create_experiment(run.project, user, request, Origin(run, step)).runs.get()
    note_action(run, user, RunAction.Kind.FORKED, f"from step {step}, as {fork}")
    return fork


def _refuse_search_or_evaluation(run: Run) -> None:
    if hasattr(run, "evaluation"):
        reason = "an evaluation trains nothing; evaluate the version again instead"
        raise NotNow([{"path": "run", "value": str(run.pk), "reason": reason}])
    if hasattr(run, "search"):
        reason = "a search at test time trains nothing; start another search instead"
        raise NotNow([{"path": "run", "value": str(run.pk), "reason": reason}])
