"""Metrics of a version: its evaluations, and the final evaluation of its run.

Invariant: figures of one name mean the same for every source: those of the version alone carry no
agent's name. A run's figures of a whole team (trees) are not attributed to one of its models.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webapp.registry.evaluations import plain
from webapp.registry.models import Evaluation, ModelVersion
from webapp.telemetry.models import Event

SPLITS = ("test", "validation")


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a version."""

    source: str
    """The problems: a dataset version, or a split of its run's."""
    figure: str
    value: float
    standard_error: float | None
    problems: int


def evaluations_of(version: ModelVersion) -> list[Evaluation]:
    """Returns the version's evaluations, newest first."""
    evaluations = version.evaluations.select_related(
        "dataset_version__dataset", "run__experiment", "run__created_by"
    )
    return list(evaluations.defer("outcomes", "run__config").order_by("-pk"))


def metrics_of(version: ModelVersion, evaluations: Iterable[Evaluation]) -> list[Metric]:
    """Returns all metrics: those of the newest evaluation on each dataset, then the run's."""
    result: dict[tuple[str, str], Metric] = {}
    for one in evaluations:
        source = str(one.dataset_version)
        for name, values in one.figures.items():
            if values["value"] is not None:
                metric = Metric(source, name, **values)
                result.setdefault((source, name), metric)
    return [*result.values(), *_of_its_run(version)]


def _of_its_run(version: ModelVersion) -> Iterable[Metric]:
    if version.run is None:
        return
    for split in SPLITS:
        latest = version.run.result.get(split, {}).get("latest") or {}
        if latest.get("step") == version.step and version.agent in latest.get("agents", {}):
            error = (latest.get("standard_errors") or {}).get(version.agent)
            value = latest["agents"][version.agent]
            if value is None or latest["problems"] is None:
                continue  # an external engine did not measure it
            yield Metric(f"{split} split of its run", "pass@1", value, error, latest["problems"])


def outcomes_of(version: ModelVersion) -> dict[str, dict[str, Any]]:
    """Returns {"contents", "outcomes"} by source, per problem, as in `eval.outcomes`."""
    result: dict[str, dict[str, Any]] = {}
    evaluated = version.evaluations.select_related("dataset_version__dataset")
    for one in evaluated.exclude(outcomes={}).order_by("-pk"):
        result.setdefault(str(one.dataset_version), _plain(one.outcomes))
    for split in SPLITS if version.run_id else ():
        events = Event.objects.filter(
            run=version.run_id,
            kind="eval.outcomes",
            payload__split=split,
            payload__step=version.step,
        )
        payload = events.order_by("-seq").values_list("payload", flat=True).first()
        values = payload and payload["outcomes"].get(f"pass@1/{version.agent}")
        if values:
            source = f"{split} split of its run"
            result[source] = {"contents": payload["contents"], "outcomes": {"pass@1": values}}
    return result


def _plain(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "outcomes": {plain(name): v for name, v in payload["outcomes"].items()}}
