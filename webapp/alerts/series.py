"""Names of series that a rule may name: those that runs of its scope have reported."""

from __future__ import annotations

import difflib

from django.db.models import QuerySet

from webapp.alerts.errors import AlertRefused
from webapp.alerts.thresholds import EACH_AGENT
from webapp.projects.models import Project, Workspace
from webapp.telemetry.models import Metric

MOST_SUGGESTIONS = 3
_MOST_NAMES = 5000


def refuse_unknown(
    metric: str, agent: str, workspace: Workspace | None, project: Project | None
) -> None:
    """Raises `AlertRefused` for a series that no run of the scope has, if its runs have any; where
    no run has reported anything yet, every name is accepted."""
    metrics = _reported(workspace, project)
    if agent == EACH_AGENT:
        is_known = metrics.filter(name__startswith=f"{metric}.").exists()
    else:
        is_known = metrics.filter(name=f"{metric}.{agent}" if agent else metric).exists()
    if is_known:
        return
    names = list(metrics.values_list("name", flat=True).distinct()[:_MOST_NAMES])
    if names:
        name = f"{metric}.{agent}" if agent else metric
        close = difflib.get_close_matches(name, names, MOST_SUGGESTIONS, 0.4)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise AlertRefused("metric", name, f"no run there has reported such a series{hint}")


def _reported(workspace: Workspace | None, project: Project | None) -> QuerySet[Metric]:
    if project is not None:
        return Metric.objects.filter(run__experiment__project=project)
    return Metric.objects.filter(run__experiment__project__workspace=workspace)
