"""Reads of the model registry.

Invariant: a page holds a bounded number of versions, however many runs have added one.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Prefetch, QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.registry.models import Model, ModelVersion

NEWEST = 10
"""Versions that the list of models shows of each."""
PAGE = 50

_COLUMNS = (
    "number",
    "sha256",
    "parameters",
    "created",
    "agent",
    "step",
    "metadata",
    "model__name",
    "parent__number",
    "parent__model__name",
    "run__number",
    "run__experiment__name",
    "dataset_version__number",
    "dataset_version__dataset__name",
)
"""What a table of versions shows; a run's whole config is not among it."""


def visible_models(user: User) -> QuerySet[Model]:
    """Models that `user` may see, by name, each with its versions, newest first."""
    return _models(user).prefetch_related(Prefetch("versions", _versions()))


def models_with_newest(user: User) -> QuerySet[Model]:
    """The same with `version_count`, and the newest of the versions only, as `newest`."""
    newest = _versions().only(*_COLUMNS)[:NEWEST]
    return (
        _models(user)
        .annotate(version_count=Count("versions"))
        .prefetch_related(Prefetch("versions", newest, to_attr="newest"))
    )


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """Some versions of a model, newest first, and the number to go on before, if there are more."""

    model: Model
    versions: list[ModelVersion]
    next: int | None


def versions_page(user: User, model_id: int, before: int | None) -> VersionsPage:
    """One page of a model's versions, or `Http404` if `user` may not see the model."""
    model = get_object_or_404(_models(user).annotate(version_count=Count("versions")), pk=model_id)
    versions = _versions().only(*_COLUMNS).filter(model=model)
    if before is not None:
        versions = versions.filter(number__lt=before)
    found = list(versions[: PAGE + 1])
    more = len(found) > PAGE
    return VersionsPage(model, found[:PAGE], found[PAGE - 1].number if more else None)


def _models(user: User) -> QuerySet[Model]:
    return Model.objects.visible_to(user).select_related("project").order_by("project", "name")


def _versions() -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related(
        "model", "parent__model", "run__experiment", "dataset_version__dataset"
    ).order_by("-number")
