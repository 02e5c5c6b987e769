"""Reads of imports and of the catalogue of pretrained models.

Invariant: a page shows a bounded number of imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Case, Q, QuerySet, SmallIntegerField, When
from django.shortcuts import get_object_or_404
from django.utils import timezone

from engine.config.pretrained import PretrainedModel, pretrained_models
from webapp.accounts.models import User
from webapp.projects.models import Project
from webapp.registry.model_imports.catalogue import usable_catalogue
from webapp.registry.models import ModelImport, ModelVersion

SHOWN = 20
RECENT = timedelta(days=1)
"""How long an import that has ended is shown on the page of models."""


def visible_imports(user: User) -> QuerySet[ModelImport]:
    """Returns the imports that `user` may see, newest first."""
    rows = ModelImport.objects.visible_to(user).select_related(
        "project__workspace", "version__model", "created_by"
    )
    return rows.order_by("-pk")


def visible_import(user: User, import_id: int) -> ModelImport:
    """Returns the import. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_imports(user), pk=import_id)


def recent_imports(user: User, project: int | None = None) -> tuple[list[ModelImport], int]:
    """Returns the imports that are open or ended within `RECENT`, open ones first, then newest
    first, `SHOWN` at most, and the number of others; of all projects that `user` may see, or of
    one."""
    ended = Q(finished__gt=timezone.now() - RECENT)
    rows = visible_imports(user).filter(Q(finished=None) | ended)
    if project is not None:
        rows = rows.filter(project=project)
    is_open = Case(When(finished=None, then=0), default=1, output_field=SmallIntegerField())
    shown = list(rows.order_by(is_open, "-pk")[:SHOWN])
    more = rows.order_by().count() - SHOWN if len(shown) == SHOWN else 0
    return shown, more


def imports_page(
    user: User, project: Project, state: str | None, cursor: int | None, limit: int
) -> tuple[list[ModelImport], int | None]:
    """Returns one page of a project's imports, newest first, and the cursor of the next one."""
    rows = visible_imports(user).filter(project=project)
    if state is not None:
        rows = rows.filter(state=state)
    if cursor is not None:
        rows = rows.filter(pk__lt=cursor)
    shown = list(rows[: limit + 1])
    return shown[:limit], shown[limit - 1].pk if len(shown) > limit else None


@dataclass(frozen=True, slots=True)
class Offer:
    """A model of the catalogue; `versions` are the newest of it in each of some projects."""

    model: PretrainedModel
    versions: Sequence[ModelVersion]


def offers(projects: Sequence[Project]) -> list[Offer]:
    """Returns the catalogue of pretrained models, with what the projects have of it.

    Raises:
        CatalogueUnusable: the operator's file has a fault.
    """
    with usable_catalogue():
        entries = pretrained_models()
    rows = ModelVersion.objects.filter(
        model__project__in=[one.pk for one in projects],
        metadata__origin__package__in=[entry.package for entry in entries],
    )
    newest: dict[tuple[str, int], ModelVersion] = {}
    for version in rows.select_related("model__project").order_by("pk"):
        newest[version.metadata["origin"]["package"], version.model.project_id] = version
    return [Offer(entry, _of(entry, newest)) for entry in entries]


def _of(
    entry: PretrainedModel, newest: Mapping[tuple[str, int], ModelVersion]
) -> list[ModelVersion]:
    return [version for (package, _), version in newest.items() if package == entry.package]
