"""Rows of an export's tables, as far as an import reads them.

Invariant: whatever passes fits the column that it is for; fields that are not named here are
ignored. Ids are those of the exporting installation, and mean nothing here (`mapping.Ids`).
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from engine.events.vocabulary import RunState
from webapp.markdown import MOST_CHARACTERS

_TEXT = r"^[^\x00]*$"
Id = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Big = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=_TEXT)]
LongName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=_TEXT)]
ShortName = Annotated[str, msgspec.Meta(min_length=1, max_length=40, pattern=_TEXT)]
Text = Annotated[str, msgspec.Meta(max_length=1_000_000, pattern=_TEXT)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class About(msgspec.Struct):
    name: Name
    grove: Annotated[str, msgspec.Meta(max_length=40)] = ""
    """Version of Grove that made the export."""


class Person(msgspec.Struct):
    id: Id
    name: Annotated[str, msgspec.Meta(pattern=r"^[\w.@+-]{1,150}$")]


class Missing(msgspec.Struct):
    name: Text


class Project(msgspec.Struct):
    id: Id
    name: Name
    visibility: Literal["workspace", "private"]
    created: Moment
    created_by_id: Id | None


class Experiment(msgspec.Struct):
    id: Id
    project_id: Id
    name: LongName
    config: dict[str, Any]
    created_by_id: Id
    created: Moment


class Run(msgspec.Struct):
    id: uuid.UUID
    experiment_id: Id
    number: Number
    config: dict[str, Any]
    variant: dict[str, Any]
    parent_id: uuid.UUID | None
    parent_step: Number | None
    seed: Number
    dataset_version_id: Id | None
    created_by_id: Id
    created: Moment
    state: RunState
    queued_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    tracked: bool
    restarts: Number
    step: Number
    steps: Number
    error: Text
    tags: list[str]
    notes: str
    archived_at: Moment | None


class Tracking(msgspec.Struct):
    run_id: uuid.UUID
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=_TEXT)]
    group: Annotated[str, msgspec.Meta(max_length=128, pattern=_TEXT)]


class Comment(msgspec.Struct):
    run_id: uuid.UUID
    tree: Big | None
    node: Big | None
    comparison: Annotated[str, msgspec.Meta(max_length=400)]
    author_id: Id
    text: Text
    created: Moment
    edited: Moment | None


class Search(msgspec.Struct):
    run_id: uuid.UUID
    problem: dict[str, Any]


class DatasetVersion(msgspec.Struct):
    id: Id
    dataset_id: Id
    dataset__name: LongName
    dataset__project: Id
    number: Number
    spec: dict[str, Any]
    content_hash: Sha256
    left_out: list[Text]
    created: Moment
    created_by_id: Id | None
    note: Text
    parent_id: Id | None
    artifact_id: Sha256 | None
    faulty: Number | None


class Check(msgspec.Struct):
    state: Literal["open", "passed", "failed", "unverified"]
    reason: Text


class ModelVersion(msgspec.Struct):
    id: Id
    model_id: Id
    model__name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    model__project: Id
    number: Number
    sha256: Sha256
    parameters: Big
    created: Moment
    run_id: uuid.UUID | None
    agent: Annotated[str, msgspec.Meta(max_length=40, pattern=_TEXT)]
    step: Number | None
    dataset_version_id: Id | None
    parent_id: Id | None
    metadata: dict[str, Any]
    created_by_id: Id | None
    notes: Text


class File(msgspec.Struct):
    version_id: Id
    name: Name
    size: Big
    sha256: Sha256


class Use(msgspec.Struct):
    run_id: uuid.UUID
    agent: ShortName
    version_id: Id


class Alias(msgspec.Struct):
    model_id: Id
    name: ShortName
    version_id: Id
    moved: Moment


class Promotion(msgspec.Struct):
    model_id: Id
    alias: ShortName
    version_id: Id | None
    number: Number | None
    previous: Number | None
    reason: Text
    state: Literal["waiting", "done", "refused", "withdrawn"]
    asked_by_id: Id
    asked: Moment  # codespell:ignore
    decided_by_id: Id | None
    decided: Moment | None
    decision: Text


class Figure(msgspec.Struct):
    value: float | None
    standard_error: float | None
    problems: Number


class Outcomes(msgspec.Struct):
    contents: list[str]
    outcomes: dict[str, list[float | None]]


class Evaluation(msgspec.Struct):
    version_id: Id
    dataset_version_id: Id
    run_id: uuid.UUID
    created: Moment
    figures: dict[str, Figure]
    outcomes: dict[str, Any]


class Report(msgspec.Struct):
    id: Id
    project_id: Id
    title: LongName
    text: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS, pattern=_TEXT)]
    created_by_id: Id
    created: Moment
    edited_by_id: Id
    edited: Moment
