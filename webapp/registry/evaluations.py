"""Evaluation of any version on any set of problems by a run that does not train (engine/inference).

Invariant: an evaluation is launched, leased, stopped and resumed as any run; its figures come from
the run's log and are written once, when it has finished.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from statistics import stdev
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.config.problems import MIXTURE
from engine.config.schema import parse_config
from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.models import Experiment, Run, RunAction
from webapp.experiments.run_settings.bounds import refuse_beyond_machine
from webapp.experiments.run_settings.paths import refuse_paths
from webapp.experiments.scheduling.dispatch import dispatch_on_commit
from webapp.experiments.scheduling.queue import admit
from webapp.registry.errors import RegistryRefused
from webapp.registry.models import Evaluation, ModelUse, ModelVersion
from webapp.telemetry.models import Event

AGENT = "model"
"""Agent name of every evaluated version, so that figures of two versions have the same names."""


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Settings of an evaluation."""

    problems: int = 300
    """Maximum number of problems."""
    samples: int = 1
    """Answers per problem."""
    nodes: int = 1
    """Nodes of the search tree of each problem; 1 means no search."""
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@transaction.atomic
def evaluate(
    version: ModelVersion, dataset: DatasetVersion, settings: EvaluationSettings, user: User
) -> Evaluation:
    """Queues a run that evaluates `version` on `dataset`.

    Raises:
        ConfigError: the settings cannot run. RegistryRefused: they are of different projects.
        NotNow: too many runs are queued or running (`queue.admit`).
    """
    project = version.model.project
    if dataset.dataset.project_id != project.pk:
        raise RegistryRefused(f"{dataset} belongs to another project than {version}.")
    given = _given(version, dataset, settings)
    config = parse_config(given)
    refuse_paths(config, project)
    refuse_beyond_machine(config)
    admit(project, user)
    name = f"Evaluation of {version} on {dataset}"[:200]
    requested = {"recipe": "evaluation", "overrides": settings.to_dict()}
    experiment = Experiment.objects.create(
        project=project, name=name, created_by=user, config=requested
    )
    run = Run.objects.create(
        experiment=experiment,
        number=1,
        config=config.model_dump(mode="json"),
        given=given,
        seed=settings.seed,
        dataset_version=dataset,
        created_by=user,
        queued_at=timezone.now(),
    )
    note_action(run, user, RunAction.Kind.STARTED)
    ModelUse.objects.create(run=run, agent=AGENT, version=version)
    dispatch_on_commit(run.pk)
    return Evaluation.objects.create(version=version, dataset_version=dataset, run=run)


def _given(
    version: ModelVersion, dataset: DatasetVersion, settings: EvaluationSettings
) -> dict[str, Any]:
    return {
        "recipe": "evaluation",
        "seed": settings.seed,
        "agents": [{"name": AGENT, "model": version.path}],
        "problems": {**_problems(dataset), "train": 1, "validation": 0, "test": settings.problems},
        "loss": {"kl_coefficient": 0.0},
        "evaluation": {"samples_per_problem": settings.samples, "tree_nodes": settings.nodes},
    }


def _problems(dataset: DatasetVersion) -> dict[str, Any]:
    if dataset.artifact_id:
        return {"dataset": dataset.reference}
    names = ("dataset", "seed", *MIXTURE)
    return {name: dataset.spec[name] for name in names if name in dataset.spec}


@transaction.atomic
def record_figures(run_id: uuid.UUID) -> None:
    """Stores the figures in the log of a finished evaluation; does nothing for any other run."""
    evaluation = Evaluation.objects.select_for_update().filter(run=run_id).first()
    event = Event.objects.filter(run=run_id, kind="eval.outcomes").order_by("-seq").first()
    if evaluation is None or event is None:
        return
    evaluation.outcomes = {key: event.payload[key] for key in ("contents", "outcomes")}
    evaluation.figures = {
        plain(name): _figure(values) for name, values in event.payload["outcomes"].items()
    }
    evaluation.save(update_fields=["outcomes", "figures"])


def _figure(values: list[float | None]) -> dict[str, Any]:
    numbers = [value for value in values if value is not None]
    several = len(numbers) > 1
    return {
        "value": sum(numbers) / len(numbers) if numbers else None,
        "standard_error": stdev(numbers) / math.sqrt(len(numbers)) if several else 0.0,
        "problems": len(numbers),
    }


def plain(name: str) -> str:
    """Returns a figure's name without the evaluated agent's."""
    return name.removesuffix(f"/{AGENT}")
