"""Comparison of versions: lineage, settings of their runs, and paired evaluations.

Invariant: the first version is the baseline of the others, on the problems that both were evaluated
on, matched by content (`comparison`, as runs are compared).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webapp.comparison.comparison import Difference, differences, labels_of
from webapp.comparison.comparison import settings_that_differ as settings_of_runs
from webapp.comparison.intervals import CONFIDENCE, Budget
from webapp.registry.models import ModelVersion
from webapp.registry.versions.metrics import outcomes_of

MOST_VERSIONS = 8


@dataclass(frozen=True, slots=True)
class Pair:
    """Comparison of a version with the first one on one set of problems."""

    version: ModelVersion
    label: str
    source: str
    figures: list[Difference]


def page(versions: Sequence[ModelVersion]) -> dict[str, Any]:
    """Returns `compared` [(version, label)], `lineage` and `settings` [{path, values}], `pairs`,
    `missing` [str] and `confidence`."""
    names = labels_of(versions)
    compared = pairs(versions) if len(versions) > 1 else []
    labels = {pair.label for pair in compared}
    return {
        "compared": list(zip(versions, names, strict=True)),
        "lineage": lineage_that_differs(versions),
        "settings": settings_that_differ(versions),
        "pairs": compared,
        "missing": [name for name in names[1:] if name not in labels],
        "confidence": f"{100 * CONFIDENCE:.0f} %",
    }


def lineage_that_differs(versions: Sequence[ModelVersion]) -> list[dict[str, Any]]:
    """Returns the rows of lineage that differ; None where a version has no value."""
    rows: dict[str, list[Any]] = {
        "Parent": [version.parent for version in versions],
        "Run": [version.run for version in versions],
        "Agent": [version.agent or None for version in versions],
        "Step": [version.step for version in versions],
        "Trained on": [version.dataset_version for version in versions],
        "Parameters": [f"{version.parameters:,}" for version in versions],
        "Weights": [version.sha256[:12] for version in versions],
    }
    return [
        {"path": name, "values": [None if one is None else str(one) for one in values]}
        for name, values in rows.items()
        if len(set(map(str, values))) > 1
    ]


def settings_that_differ(versions: Sequence[ModelVersion]) -> list[dict[str, Any]]:
    """Returns the settings that differ between the versions' runs; a version without a run has
    none."""
    runs = [version.run for version in versions if version.run]
    if len({run.pk for run in runs}) < 2:
        return []
    rows = settings_of_runs(runs)
    positions = iter(range(len(runs)))
    order = [next(positions) if version.run else None for version in versions]
    return [
        {
            "path": row["path"],
            "values": [None if at is None else row["values"][at] for at in order],
        }
        for row in rows
    ]


def pairs(versions: Sequence[ModelVersion]) -> list[Pair]:
    """Compares every other version with the first, on each set of problems that both have."""
    names = labels_of(versions)
    first, *others = [outcomes_of(version) for version in versions]
    result, budget = [], Budget()
    for version, label, outcomes in zip(versions[1:], names[1:], others, strict=True):
        for source in (name for name in first if name in outcomes):
            figures = differences((names[0], label), first[source], outcomes[source], budget)
            if figures:
                result.append(Pair(version, label, source, figures))
    return result
