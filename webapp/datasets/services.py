"""Recording which problems a run trains on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from engine.config import ConfigError, ProblemsConfig
from engine.problems.source import check_problem_set
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.projects.models import Project


@transaction.atomic
def version_of(project: Project, problems: ProblemsConfig) -> DatasetVersion:
    """The version that these settings name, recorded on first use.

    Raises:
        ConfigError: the file cannot be read, or holds problems that cannot be trained on.
    """
    spec, content_hash = _identity(problems)
    check_problem_set(problems)
    name = Path(problems.dataset).name
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    dataset, _ = Dataset.objects.get_or_create(project=project, name=name)
    known = dataset.versions.filter(content_hash=content_hash).first()
    number = dataset.versions.count() + 1
    return known or DatasetVersion.objects.create(
        dataset=dataset, number=number, spec=spec, content_hash=content_hash
    )


def _identity(problems: ProblemsConfig) -> tuple[dict[str, Any], str]:
    spec = problems.model_dump(mode="json")
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted"))
    if problems.dataset != "generated":
        digest.update(_content(problems.dataset))
    return spec, digest.hexdigest()


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); give `generated` or a JSONL file"
        raise ConfigError([{"path": "problems.dataset", "value": path, "reason": reason}]) from None
