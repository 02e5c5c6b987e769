"""Queries of the model registry.

Invariant: a page holds a bounded number of versions, however many runs have added one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Prefetch, Q, QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.registry.models import Alias, Evaluation, Model, ModelVersion, Promotion

NEWEST = 10
"""Versions per model in the list of models."""
MODELS_PAGE = 25
"""Models of one page of that list."""
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
"""Columns of a table of versions; a run's whole config is not among them."""


def visible_models(user: User) -> QuerySet[Model]:
    """Returns the models that `user` may see, by name, each with `version_count`, its aliases, and
    its newest versions as `newest`."""
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


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """A page of models by project and name, and the id of the model after which the next page
    starts, if there are more."""

    models: list[Model]
    next: int | None


def models_page(user: User, project: int | None, after: int | None) -> ModelsPage:
    """Returns one page of the models that `user` may see: those after the model `after`, which may
    have been deleted meanwhile: then the first ones."""
    rows = visible_models(user)
    if project is not None:
        rows = rows.filter(project=project)
    if last := after and _models(user).filter(pk=after).first():
        later = Q(project=last.project, name__gt=last.name) | Q(project__gt=last.project_id)
        rows = rows.filter(later)
    shown = list(rows[: MODELS_PAGE + 1])
    more = len(shown) > MODELS_PAGE
    return ModelsPage(shown[:MODELS_PAGE], shown[MODELS_PAGE - 1].pk if more else None)


def visible_model(user: User, model_id: int) -> Model:
    """Returns the model. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_models(user), pk=model_id)


def visible_versions(user: User) -> QuerySet[ModelVersion]:
    """Returns the versions that `user` may see, with all related rows that a response needs."""
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
    """Returns the version. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_versions(user), model=model_id, number=number)


def compared_versions(user: User, ids: Sequence[int]) -> list[ModelVersion]:
    """Returns the versions with these ids, in their order, each once. Raises `Http404`."""
    return [get_object_or_404(visible_versions(user), pk=one) for one in dict.fromkeys(ids)]


def visible_promotions(user: User) -> QuerySet[Promotion]:
    """Returns the promotions that `user` may see, with who requested and who decided them."""
    return Promotion.objects.visible_to(user).select_related(
        "model__project__workspace", "version__model", "asked_by", "decided_by"
    )


def visible_promotion(user: User, promotion_id: int) -> Promotion:
    """Returns the promotion. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_promotions(user), pk=promotion_id)


def visible_evaluations(user: User) -> QuerySet[Evaluation]:
    """Returns the evaluations that `user` may see, with their runs."""
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
    """Returns the evaluation. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_evaluations(user), pk=evaluation_id)


def datasets_for(version: ModelVersion, limit: int = 100) -> list[DatasetVersion]:
    """Returns the dataset versions on which the version can be evaluated, newest first."""
    versions = DatasetVersion.objects.filter(dataset__project=version.model.project)
    return list(versions.select_related("dataset").order_by("-created", "-pk")[:limit])


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """A page of a model's versions, newest first, and the number before which the next page starts,
    if there are more."""

    model: Model
    versions: list[ModelVersion]
    next: int | None


def versions_page(user: User, model_id: int, before: int | None) -> VersionsPage:
    """Returns one page of a model's versions. Raises `Http404` if `user` may not see the model."""
    model = get_object_or_404(_models(user).annotate(version_count=Count("versions")), pk=model_id)
    versions = _versions().only(*_COLUMNS).filter(model=model).prefetch_related("aliases")
    if before is not None:
        versions = versions.filter(number__lt=before)
    rows = list(versions[: PAGE + 1])
    more = len(rows) > PAGE
    return VersionsPage(model, rows[:PAGE], rows[PAGE - 1].number if more else None)


def _models(user: User) -> QuerySet[Model]:
    return Model.objects.visible_to(user).select_related("project").order_by("project", "name")


def _versions() -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related(
        "model", "parent__model", "run__experiment", "dataset_version__dataset"
    ).order_by("-number")
