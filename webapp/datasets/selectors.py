"""Queries of datasets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse

from engine.problems.splits import sort_key
from webapp.accounts.models import User
from webapp.artifacts.store import local_path
from webapp.datasets.models import Dataset, DatasetProblem, DatasetReport, DatasetVersion

PAGE = 25
NEWEST = 10
"""Versions per dataset in the list of datasets."""


def visible_datasets(user: User) -> QuerySet[Dataset]:
    """Returns the datasets that `user` may see, by name, each with its versions, newest first."""
    versions = DatasetVersion.objects.select_related("created_by", "parent__dataset", "dataset")
    return (
        Dataset.objects.visible_to(user)
        .select_related("project")
        .prefetch_related(Prefetch("versions", versions.order_by("-number")))
        .order_by("project", "name")
    )


def visible_version(user: User, version_id: int) -> DatasetVersion:
    """Returns the version. Raises `Http404` if it does not exist for `user`."""
    versions = DatasetVersion.objects.visible_to(user).select_related(
        "dataset__project__workspace", "created_by", "parent__dataset", "artifact"
    )
    return get_object_or_404(versions, pk=version_id)


def trainable_versions(user: User) -> QuerySet[DatasetVersion]:
    """Returns the first 200 stored and good versions that `user` may see, by name, newest first."""
    versions = DatasetVersion.objects.visible_to(user).filter(artifact__isnull=False, faulty=0)
    return versions.select_related("dataset__project").order_by("dataset__name", "-number")[:200]


@dataclass(frozen=True, slots=True)
class ProblemsPage:
    """A page of a version's problems, and the cursor of the next page, if any."""

    problems: list[DatasetProblem]
    next: int | None


def problems_page(
    version: DatasetVersion, words: str = "", check: str = "", after: int = 0, limit: int = PAGE
) -> ProblemsPage:
    """Returns problems in their order; if given, only those with all of the words in statement, id,
    entry point or tags, and of one `check` state."""
    problems = version.problems.filter(number__gt=after).order_by("number")
    for word in words.split():
        texts = (Q(**{f"{field}__icontains": word}) for field in ("statement", "problem"))
        problems = problems.filter(
            next(texts) | next(texts) | Q(entry_point__icontains=word) | Q(tags__contains=[word])
        )
    if check:
        problems = problems.filter(check_state=check)
    rows = list(problems[: limit + 1])
    return ProblemsPage(rows[:limit], rows[limit - 1].number if len(rows) > limit else None)


def content_of(row: DatasetProblem) -> dict[str, Any]:
    """Returns the whole problem, as `engine.problems.records` writes it."""
    with local_path(row.version.artifact_id).open("rb") as content:
        content.seek(row.offset)
        return json.loads(content.read(row.length))


@dataclass(frozen=True, slots=True)
class Splits:
    """Numbers of the problems of each split, in the order in which a run takes them."""

    validation: list[int]
    test: list[int]
    train: list[int]


def splits(version: DatasetVersion, seed: int, sizes: Sequence[int]) -> Splits:
    """Returns the splits of a run with this `problems.seed` and sizes (train, validation, test)."""
    train, validation, test = sizes
    hashes = version.problems.values_list("number", "content_hash")
    order = [number for number, digest in sorted(hashes, key=lambda one: sort_key(one[1], seed))]
    held = validation + test
    return Splits(order[:validation], order[validation:held], order[held : held + train])


@dataclass(frozen=True, slots=True)
class Use:
    """An object that refers to a version."""

    what: str
    name: str
    address: str
    dataset_id: int | None = None


def uses(version: DatasetVersion, user: User | None) -> list[Use]:
    """Returns the runs and model versions that were trained or evaluated on it, and versions
    derived from it; those that `user` may see, or all if `user` is None."""

    def visible(rows: Any) -> Any:
        return rows.visible_to(user) if user else rows.all()

    runs = visible(version.run_set).filter(
        evaluation__run=None
    )  # an evaluation is listed as such, below
    runs = runs.select_related("experiment").order_by("-created")
    models = visible(version.modelversion_set).select_related("model").order_by("-pk")
    children = visible(version.children).select_related("dataset").order_by("number")
    result = [Use("run", str(run), reverse("run", args=[run.pk])) for run in runs]
    result += [Use("model", str(one), reverse("model", args=[one.model_id])) for one in models]
    evaluations = visible(version.evaluations).select_related("version__model").order_by("-pk")
    result += [
        Use("evaluation of", str(one.version), reverse("model", args=[one.version.model_id]))
        for one in evaluations
    ]
    return result + [
        Use("dataset", str(one), reverse("dataset-version", args=[one.pk]), one.dataset_id)
        for one in children
    ]


def newest_report(version: DatasetVersion, kind: str) -> DatasetReport | None:
    """Returns the last requested report of this kind."""
    reports = version.reports.select_related("created_by", "version", "other__dataset")
    return reports.filter(kind=kind).order_by("-pk").first()


def visible_overlaps(user: User, version: DatasetVersion) -> QuerySet[DatasetReport]:
    """Returns the overlaps with other versions that `user` may see, newest first."""
    overlaps = version.reports.filter(kind=DatasetReport.Kind.OVERLAP)
    visible = DatasetVersion.objects.visible_to(user).values("pk")
    return overlaps.filter(other__in=visible).select_related("other__dataset").order_by("-pk")
