"""REST of comparisons: the data of the comparison page."""

from __future__ import annotations

import uuid
from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from webapp.comparison import comparison
from webapp.experiments.api.runs import RunOut
from webapp.experiments.presentation import summary
from webapp.experiments.selectors import visible_run

router = Router()


class ComparisonQuery(Schema):
    run: list[uuid.UUID] = Field(min_length=2, max_length=comparison.MOST_RUNS)
    """Runs to compare; the first is the baseline."""
    split: Literal["test", "validation"] = "test"


class SettingOut(Schema):
    path: str
    values: list[str | None]
    """Values as TOML, in the order of the runs; null where a run has no such setting."""


class DifferenceOut(Schema):
    figure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    problems: int
    sentence: str


class PairOut(Schema):
    run: uuid.UUID
    label: str
    figures: list[DifferenceOut]
    missing: str


class ComparisonOut(Schema):
    runs: list[RunOut]
    labels: list[str]
    settings: list[SettingOut]
    """Settings that are not the same in all runs."""
    curves: list[str]
    """Metrics that the page draws, each with all its parts: a run's `/metrics` lists them."""
    evaluations: list[PairOut]


@router.get("", response=ComparisonOut)
def compare_runs(request: HttpRequest, query: Query[ComparisonQuery]):
    """Returns differing settings, the metrics to draw, and paired bootstrap intervals of the newest
    evaluations."""
    runs = [visible_run(request.user, run_id) for run_id in dict.fromkeys(query.run)]
    return {
        "runs": [summary(run) for run in runs],
        "labels": comparison.labels_of(runs),
        "settings": comparison.settings_that_differ(runs),
        "curves": list(comparison.CURVES),
        "evaluations": [
            {"run": pair.run.pk, "label": pair.label, "figures": pair.figures,
             "missing": pair.missing}
            for pair in comparison.pairs(runs, query.split)
        ],
    }  # fmt: skip
