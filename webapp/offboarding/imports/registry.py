"""Registry of an export: versions with their files and lineage, aliases, promotions, evaluations.

Invariants: versions keep their numbers; figures and outcomes are those that were recorded, nothing
is measured again. A promotion that waited for a second person is withdrawn: nobody decides on it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import records
from webapp.offboarding.imports.archive import plain
from webapp.offboarding.imports.rows import Import, create
from webapp.registry.model_files.folders import folder_of
from webapp.registry.models import (
    Alias,
    Evaluation,
    Model,
    ModelUse,
    ModelVersion,
    Promotion,
    PromotionState,
    VersionFile,
)
from webapp.registry.promotion import NAME


def create_models(job: Import) -> None:
    member, parents = "models.jsonl", {}
    for one in job.archive.rows(member, records.ModelVersion):
        version = _version(job, member, one)
        job.ids.add(member, "model version", one.id, version)
        parents[version.pk] = one.parent_id
    for pk, parent in parents.items():
        if parent is not None:
            row = job.ids.get(member, "model version", parent)
            ModelVersion.objects.filter(pk=pk).update(parent=row)
    for use in job.archive.rows("uses.jsonl", records.Use):
        create(
            ModelUse,
            run=job.ids.get("uses.jsonl", "run", use.run_id),
            agent=use.agent,
            version=job.ids.get("uses.jsonl", "model version", use.version_id),
        )


def _version(job: Import, member: str, one: records.ModelVersion) -> ModelVersion:
    model = job.ids.find("model", one.model_id)
    if model is None:
        project = job.ids.get(member, "project", one.model__project)
        by = job.people.importer
        model = create(Model, project=project, name=one.model__name, created_by=by)
        job.ids.add(member, "model", one.model_id, model)
    stored = job.contents.files.get(one.id)
    sha256 = {name: row.pk for name, row in stored.artifacts.items()} if stored else {}
    version = create(
        ModelVersion,
        {"created": one.created},
        model=model,
        number=one.number,
        # A version whose files were lost has a folder that does not exist.
        path=str(folder_of(sha256 or {"lost": one.sha256})),
        sha256=one.sha256,
        parameters=stored.layout.parameters if stored else one.parameters,
        run=job.ids.get(member, "run", one.run_id),
        agent=one.agent,
        step=one.step,
        dataset_version=job.ids.get(member, "dataset version", one.dataset_version_id),
        metadata=plain(one.metadata),
        created_by=job.people.maybe(member, one.created_by_id),
        notes=job.people.signed(member, one.notes, one.created_by_id),
    )
    if stored:
        VersionFile.objects.bulk_create(
            VersionFile(version=version, name=name, size=row.size, sha256=row.pk, artifact=row)
            for name, row in stored.artifacts.items()
        )
    return version


def create_decisions(job: Import) -> None:
    """Creates aliases and promotions, as they were."""
    member = "aliases.jsonl"
    for one in job.archive.rows(member, records.Alias):
        model, version = _of_model(job, member, one.model_id, one.version_id)
        _refuse_alias(member, one.name)
        create(Alias, {"moved": one.moved}, model=model, name=one.name, version=version)
    member = "promotions.jsonl"
    for one in job.archive.rows(member, records.Promotion):
        _refuse_alias(member, one.alias)
        model, version = _of_model(job, member, one.model_id, one.version_id)
        waits = one.state == PromotionState.WAITING
        create(
            Promotion,
            {"asked": one.asked},  # codespell:ignore
            model=model,
            alias=one.alias,
            version=version,
            number=one.number,
            previous=one.previous,
            reason=job.people.signed(member, one.reason, one.asked_by_id),
            state=PromotionState.WITHDRAWN if waits else one.state,
            asked_by=job.people.user(member, one.asked_by_id),
            decided_by=job.people.maybe(member, one.decided_by_id),
            decided=one.decided,
            decision=job.people.signed(member, one.decision, one.decided_by_id),
        )


def _of_model(job: Import, member: str, model: int, version: int | None) -> tuple[Model, Any]:
    row = job.ids.get(member, "model", model)
    moved = job.ids.get(member, "model version", version)
    if moved is not None and moved.model_id != row.pk:
        raise ImportRefused(member, f"version {version} is none of the model {row}.")
    return row, moved


def _refuse_alias(member: str, name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise ImportRefused(member, f"{name!r} cannot be an alias.")


def create_evaluations(job: Import) -> None:
    member = "evaluations.jsonl"
    for one in job.archive.rows(member, records.Evaluation):
        try:
            msgspec.convert(one.outcomes or {"contents": [], "outcomes": {}}, records.Outcomes)
        except msgspec.ValidationError as error:
            raise ImportRefused(member, f"the outcomes of run {one.run_id}: {error}") from None
        create(
            Evaluation,
            {"created": one.created},
            version=job.ids.get(member, "model version", one.version_id),
            dataset_version=job.ids.get(member, "dataset version", one.dataset_version_id),
            run=job.ids.get(member, "run", one.run_id),
            figures=plain(msgspec.to_builtins(one.figures)),
            outcomes=plain(one.outcomes),
        )
