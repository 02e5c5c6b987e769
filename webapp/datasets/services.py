"""Recording of the dataset version that a run trains on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from engine.config.errors import ConfigError
from engine.config.problems import MIXTURE, ProblemsConfig
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.references import is_reference, trainable
from webapp.datasets.server_files.contents import checked_contents
from webapp.projects.models import Project

_NAME_CHARS: int = Dataset._meta.get_field("name").max_length


@transaction.atomic
def version_of(project: Project, problems: ProblemsConfig) -> DatasetVersion:
    """Returns the version that these settings name, recorded on first use.

    Raises:
        ConfigError: the file cannot be read, or holds problems that cannot be trained on.
    """
    if is_reference(problems.dataset):
        return _stored(project, problems)
    contents = checked_contents(problems)
    spec, content_hash = _identity(problems, contents.hash)
    name = (Path(problems.dataset).absolute().name or "/")[:_NAME_CHARS]
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    dataset, _ = Dataset.objects.get_or_create(project=project, name=name)
    existing = dataset.versions.filter(content_hash=content_hash).first()
    return existing or DatasetVersion.objects.create(
        dataset=dataset,
        number=next_number(dataset),
        spec=spec,
        content_hash=content_hash,
        left_out=list(contents.left_out),
    )


def next_number(dataset: Dataset) -> int:
    """Returns the number of the next version; the caller holds the project's row lock."""
    newest = dataset.versions.order_by("-number").values_list("number", flat=True).first()
    return (newest or 0) + 1


def _stored(project: Project, problems: ProblemsConfig) -> DatasetVersion:
    version = trainable(project, problems.dataset)
    count, held_back = version.statistics["problems"], problems.validation + problems.test
    if count <= held_back:
        reason = (
            f"{version} holds {count} problems, but validation and test alone take {held_back}; "
            "lower problems.validation or problems.test"
        )
        raise ConfigError([{"path": "problems", "value": count, "reason": reason}])
    return version


def _identity(problems: ProblemsConfig, contents_hash: str) -> tuple[dict[str, Any], str]:
    # A file's format does not count, only the problems that it holds.
    # Settings of a mixture that is not used do not count either: they are newer than many versions.
    left_out = {"format"} if problems.underspecified_share else {"format", *MIXTURE}
    spec = problems.model_dump(mode="json", exclude=left_out)
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted"))
    digest.update(contents_hash.encode())
    return spec, digest.hexdigest()
