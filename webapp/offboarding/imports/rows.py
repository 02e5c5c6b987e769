"""Rows of projects, experiments and datasets of an export, created anew.

Invariants: the caller holds the transaction of the whole import. A setting that names a file of the
exporting server becomes a name that the operator here may list (`local:NAME`), never a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

import msgspec
from django.db.models import Model as DatabaseModel
from pydantic import ValidationError

from engine.config.errors import printable
from engine.config.problems import ProblemsConfig
from engine.problems.source import GENERATED
from webapp.datasets.models import Dataset, DatasetProblem, DatasetVersion
from webapp.datasets.storing import store_rows
from webapp.experiments.models import Experiment
from webapp.experiments.run_settings.paths import LOCAL
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import records
from webapp.offboarding.imports.archive import Archive, plain
from webapp.offboarding.imports.contents import Contents, StoredProblems
from webapp.offboarding.imports.mapping import Ids, People
from webapp.projects.models import Visibility, Workspace
from webapp.projects.services import add_project

M = TypeVar("M", bound=DatabaseModel)


@dataclass(frozen=True, slots=True)
class Import:
    """An import under way."""

    archive: Archive
    workspace: Workspace
    people: People
    contents: Contents
    ids: Ids


class _Upload(msgspec.Struct):
    name: records.LongName
    size: records.Big
    sha256: str


class _Derived(msgspec.Struct):
    keep: str
    from_: records.Number = msgspec.field(name="from")


class _StoredSpec(msgspec.Struct):
    """Origin of a stored version; one of the two."""

    format: str
    uploads: list[_Upload] | None = None
    derived: _Derived | None = None


def create(table: type[M], dates: dict[str, Any] | None = None, /, **fields: Any) -> M:
    """Creates a row; `dates` are columns that Django would set to the current time."""
    row = table._base_manager.create(**fields)
    if dates:
        table._base_manager.filter(pk=row.pk).update(**dates)
        for name, value in dates.items():
            setattr(row, name, value)
    return row


def create_projects(job: Import) -> None:
    member = "projects.jsonl"
    for one in job.archive.rows(member, records.Project):
        owner = job.people.maybe(member, one.created_by_id) or job.people.importer
        project = add_project(job.workspace, one.name, Visibility(one.visibility), owner)
        job.ids.add(member, "project", one.id, project)


def create_experiments(job: Import) -> None:
    member = "experiments.jsonl"
    for one in job.archive.rows(member, records.Experiment):
        row = create(
            Experiment,
            {"created": one.created},
            project=job.ids.get(member, "project", one.project_id),
            name=one.name,
            config=plain(one.config),
            created_by=job.people.user(member, one.created_by_id),
        )
        job.ids.add(member, "experiment", one.id, row)


def create_datasets(job: Import) -> None:
    member = "datasets.jsonl"
    parents = {}
    for one in job.archive.rows(member, records.DatasetVersion):
        version = _dataset_version(job, member, one)
        job.ids.add(member, "dataset version", one.id, version)
        parents[version.pk] = one.parent_id
    for pk, parent in parents.items():
        if parent is not None:
            row = job.ids.get(member, "dataset version", parent)
            DatasetVersion.objects.filter(pk=pk).update(parent=row)


def _dataset_version(job: Import, member: str, one: records.DatasetVersion) -> DatasetVersion:
    project = job.ids.get(member, "project", one.dataset__project)
    dataset = job.ids.find("dataset", one.dataset_id)
    if dataset is None:
        dataset = create(Dataset, project=project, name=one.dataset__name)
        job.ids.add(member, "dataset", one.dataset_id, dataset)
    stored = job.contents.problems.get(one.id)
    version = create(
        DatasetVersion,
        {"created": one.created},
        dataset=dataset,
        number=one.number,
        spec=_spec(member, one, stored is not None),
        content_hash=one.content_hash,
        left_out=[printable(text) for text in one.left_out],
        created_by=job.people.maybe(member, one.created_by_id),
        note=job.people.signed(member, one.note, one.created_by_id),
        artifact=stored.artifact if stored else None,
        statistics=stored.reading.statistics if stored else {},
        faulty=one.faulty if stored else None,
    )
    if stored:
        _problems(job.archive, version, one.id, stored)
    return version


def _spec(member: str, one: records.DatasetVersion, is_stored: bool) -> dict[str, Any]:
    name = f"{one.dataset__name} v{one.number}"
    try:
        if is_stored:
            spec = msgspec.convert(one.spec, _StoredSpec)
            if spec.derived and one.parent_id is None:
                raise ImportRefused(member, f"{name} is derived from no version.")
            return plain(one.spec)
        if one.artifact_id:  # its file was lost before the export
            return {"dataset": f"{LOCAL}{_base_name(name)}"}
        if names_a_file(one):
            elsewhere = {**one.spec, "dataset": f"{LOCAL}{_base_name(str(one.spec['dataset']))}"}
            return ProblemsConfig(**elsewhere).model_dump(mode="json", include=set(elsewhere))
        return ProblemsConfig(**one.spec).model_dump(mode="json", include=set(one.spec))
    except (msgspec.ValidationError, ValidationError) as error:
        raise ImportRefused(member, f"the origin of {name} cannot be used: {error}") from None


def names_a_file(one: records.DatasetVersion) -> bool:
    """Whether a version that is not stored names a file of the exporting server."""
    return one.spec.get("dataset", GENERATED) != GENERATED


def _base_name(path: str) -> str:
    return PurePosixPath(path.removeprefix(LOCAL)).name or "imported"


def _problems(archive: Archive, version: DatasetVersion, old: int, stored: StoredProblems) -> None:
    """Stores the problems, and the results of their checks as they were recorded."""
    store_rows(version, stored.reading)
    name = f"datasets/{old}/checks.jsonl"
    checks = list(archive.rows(name, records.Check))
    if len(checks) != stored.reading.statistics["problems"]:
        reason = f"has {len(checks)} rows, and the dataset {stored.reading.statistics['problems']}"
        raise ImportRefused(name, f"{reason} problems.")
    changed = []
    for row, check in zip(version.problems.order_by("number"), checks, strict=True):
        if check.state != DatasetProblem.Check.OPEN:
            row.check_state, row.check_reason = check.state, check.reason
            changed.append(row)
    DatasetProblem.objects.bulk_update(changed, ["check_state", "check_reason"], batch_size=1000)
