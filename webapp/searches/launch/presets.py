"""Presets of the form of a new search: a whole team, and a problem that fits it, by one click.

A pretrained model, which no run of Grove trained, is offered in two roles over the same weights,
which are in memory once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from webapp.projects.models import Project
from webapp.registry.models import ModelVersion
from webapp.registry.references import reference_to
from webapp.searches.launch import defaults
from webapp.searches.launch.examples import EVEN_SQUARES
from webapp.searches.launch.roles import ROLES, SMALLEST, in_role
from webapp.searches.launch.team import demo_team

MOST_PRETRAINED = 3
"""Newest pretrained models that have a preset."""


@dataclass(frozen=True)
class Preset:
    """A team by its keys; `problem` holds fields of the form, or nothing."""

    key: str
    label: str
    team: list[str]
    problem: dict[str, str] = field(default_factory=dict)

    def query(self, project: Project) -> str:
        """Returns the query of the page's address that chooses it."""
        return urlencode({"project": project.pk, "preset": self.key})


def presets(project: Project) -> list[Preset]:
    """Returns the presets of a project, the starters first."""
    return list(_presets(project))


def _presets(project: Project) -> Iterator[Preset]:
    shipped = demo_team()
    yield Preset("starters", "Starters", shipped)
    if (trained := defaults.team(project)) != shipped:
        yield Preset("last-run", "Last training run", trained)
    for version in pretrained(project)[:MOST_PRETRAINED]:
        reference = reference_to(version)
        team = [in_role(reference, role) for role in ROLES]
        problem = {"source": "paste", **EVEN_SQUARES.fields}
        yield Preset(f"pretrained-{version.pk}", f"{version} in two roles", team, problem)


def pretrained(project: Project) -> QuerySet[ModelVersion]:
    """Returns the newest version of each pretrained model that a project has, newest first."""
    versions = ModelVersion.objects.filter(
        Q(metadata__has_key="origin") | Q(parameters__gte=SMALLEST),
        model__project=project,
        run__isnull=True,
        metadata__starter__isnull=True,
    )
    newest = versions.order_by("model", "-number").distinct("model").values("pk")
    return ModelVersion.objects.filter(pk__in=newest).select_related("model").order_by("-pk")
