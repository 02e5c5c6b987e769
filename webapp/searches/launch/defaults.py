"""Initial values of the form of a new search: a team and a problem, so that one click starts it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.config.errors import ConfigError
from webapp.datasets.models import DatasetVersion
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion
from webapp.registry.references import reference_to
from webapp.searches.launch.examples import SORTED
from webapp.searches.launch.team import demo_team
from webapp.searches.problems import some_problems

_MOST_LOOKED_AT = 5
"""Dataset versions that are opened to look for a problem."""


def team(project: Project | None) -> list[str]:
    """Returns the keys of the newest version of each agent of the last training run; of the
    starters if the project has none."""
    trained = ModelVersion.objects.filter(model__project=project, run__isnull=False)
    last = trained.order_by("-pk").values("run")[:1]
    newest = trained.filter(run__in=last).select_related("model").order_by("model", "-number")
    keys = [reference_to(one) for one in newest.distinct("model")]
    return keys or demo_team()


def problem(versions: Iterable[DatasetVersion]) -> dict[str, Any]:
    """Returns fields of the form: the first problem of the newest of `versions` that can be read
    here; else an example to paste."""
    for version in sorted(versions, key=lambda one: -one.pk)[:_MOST_LOOKED_AT]:
        try:
            problems = some_problems(version)
        except ConfigError:
            continue  # of a file that this machine does not have
        if problems:
            return {"source": "dataset", "version": version.pk, "problem": problems[0]["id"]}
    return {"source": "paste", **SORTED.fields}
