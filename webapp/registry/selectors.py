"""Reads of the model registry.

Invariant: a page holds a bounded number of versions, however many runs have added one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Prefetch, QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.registry.models import Alias, Evaluation, Model, ModelVersion, Promotion

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
    """Models that `user` may see, by name, each with `version_count`, its aliases, and the newest
    of its versions as `newest`."""
    newest = _versions().only(*_COLUMNS)[:NEWEST]
    aliases = Alias.objects.select_related("version").order_by("name")
    return (
        _models(user)
        .annotate(version_count=Count("versions"))
        .prefetch_related(
            Prefetch("versions", newest, to_attr="newest"),
            Prefetch("aliases", aliases, to_attr="named"),
        )
    )


def visible_model(user: User, model_id: int) -> Model:
    """The model, or `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_models(user), pk=model_id)


def visible_versions(user: User) -> QuerySet[ModelVersion]:
    """Versions that `user` may see, with all that is told of one."""
    return (
        ModelVersion.objects.visible_to(user)
        .select_related(
            "model__project__workspace",
            "parent__model",
            "run__experiment__project",
            "dataset_version__dataset",
            "created_by",
        )
        .prefetch_related("files", "aliases")
    )


def visible_version(user: User, model_id: int, number: int) -> ModelVersion:
    """The version, or `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_versions(user), model=model_id, number=number)


def compared_versions(user: User, ids: Sequence[int]) -> list[ModelVersion]:
    """The versions of an address, in its order, each once, or `Http404`."""
    return [get_object_or_404(visible_versions(user), pk=one) for one in dict.fromkeys(ids)]


def visible_promotions(user: User) -> QuerySet[Promotion]:
    """Moves of aliases that `user` may see, with who asked and who decided."""
    return Promotion.objects.visible_to(user).select_related(
        "model__project__workspace", "version__model", "asked_by", "decided_by"
    )


def visible_promotion(user: User, promotion_id: int) -> Promotion:
    """The promotion, or `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_promotions(user), pk=promotion_id)


def visible_evaluations(user: User) -> QuerySet[Evaluation]:
    """Evaluations that `user` may see, with the run that measures."""
    return (
        Evaluation.objects.visible_to(user)
        .select_related(
            "version__model__project__workspace",
            "dataset_version__dataset",
            "run__experiment__project",
            "run__created_by",
        )
        .defer("outcomes")
    )


def visible_evaluation(user: User, evaluation_id: int) -> Evaluation:
    """The evaluation, or `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_evaluations(user), pk=evaluation_id)


def datasets_for(version: ModelVersion, most: int = 100) -> list[DatasetVersion]:
    """On which the version can be measured, newest first."""
    found = DatasetVersion.objects.filter(dataset__project=version.model.project)
    return list(found.select_related("dataset").order_by("-created", "-pk")[:most])


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """Some versions of a model, newest first, and the number to go on before, if there are more."""

    model: Model
    versions: list[ModelVersion]
    next: int | None


def versions_page(user: User, model_id: int, before: int | None) -> VersionsPage:
    """One page of a model's versions, or `Http404` if `user` may not see the model."""
    model = get_object_or_404(_models(user).annotate(version_count=Count("versions")), pk=model_id)
    versions = _versions().only(*_COLUMNS).filter(model=model).prefetch_related("aliases")
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
