"""REST schemas of datasets, for requests and responses."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from engine.problems.formats import DETECTED, FORMATS, OWN
from engine.problems.overlap import THRESHOLD
from webapp.artifacts.names import LIKE, LONGEST
from webapp.datasets.models import Dataset, DatasetProblem, DatasetReport, DatasetVersion
from webapp.rest.json_types import Integer, Real
from webapp.rest.pagination import LARGEST_ID, Cursor

WITHOUT_NUL = r"^[^\x00]*$"
_UPLOADS = {"minItems": 1, "uniqueItems": True}


class DatasetVersionOut(Schema):
    id: int
    dataset: int
    number: int
    spec: dict[str, Any]
    """Its origin: settings, uploads, or what was kept of another version."""
    content_hash: str
    left_out: list[str]
    """Problems of the upload that could not be used, with reasons."""
    created: datetime
    created_by: str | None
    note: str
    parent: int | None
    stored: bool
    """Whether its problems are stored: if so, a run names it by `reference`."""
    reference: str | None
    statistics: dict[str, Any]
    faulty: int | None
    """Number of problems whose reference fails; null until checked. Runs train on it only if 0."""

    @staticmethod
    def resolve_dataset(version: DatasetVersion) -> int:
        return version.dataset_id

    @staticmethod
    def resolve_created_by(version: DatasetVersion) -> str | None:
        return version.created_by.username if version.created_by else None

    @staticmethod
    def resolve_parent(version: DatasetVersion) -> int | None:
        return version.parent_id

    @staticmethod
    def resolve_stored(version: DatasetVersion) -> bool:
        return version.artifact_id is not None

    @staticmethod
    def resolve_reference(version: DatasetVersion) -> str | None:
        return version.reference if version.artifact_id else None


class DatasetOut(Schema):
    id: int
    name: str
    project: int
    versions: list[DatasetVersionOut]

    @staticmethod
    def resolve_project(dataset: Dataset) -> int:
        return dataset.project_id

    @staticmethod
    def resolve_versions(dataset: Dataset) -> list[DatasetVersion]:
        return list(dataset.versions.all())


class DatasetList(Schema):
    datasets: list[DatasetOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class Which(Cursor):
    """Filter of datasets."""

    project: int | None = Field(None, ge=0, le=LARGEST_ID)
    name: str = Field("", max_length=200, pattern=WITHOUT_NUL)
    """Part of the name, case-insensitive."""


class NewDatasetVersion(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "project": 1,
                    "name": "humaneval",
                    "uploads": ["7f4df2ab-6c8c-4d8e-9a6e-0a3c6a9b8f10"],
                }
            ]
        },
    )

    project: Integer = Field(ge=0, le=LARGEST_ID)
    name: str = Field(max_length=LONGEST, json_schema_extra={"pattern": LIKE, "minLength": 1})
    """Name of the dataset; a new name creates a dataset with this first version."""
    uploads: list[uuid.UUID] = Field(max_length=64, json_schema_extra=_UPLOADS)
    """Finished uploads: the files of one dataset. They are consumed."""
    format: str = Field(DETECTED, json_schema_extra={"enum": [DETECTED, OWN, *FORMATS.every()]})
    note: str = Field("", max_length=4000, pattern=WITHOUT_NUL)


class NewDerived(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"keep": "not-failed"}]}
    )

    keep: Literal["passed", "not-failed"] = "not-failed"
    """Keeps problems whose reference passes, or also those without one."""
    note: str = Field("", max_length=4000, pattern=WITHOUT_NUL)


class NewOverlap(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"other": 2}]})

    other: Integer = Field(ge=0, le=LARGEST_ID)
    """The version to compare with."""
    threshold: Real = Field(THRESHOLD, gt=0, le=1)
    """Share of common n-grams from which two texts count as near duplicates."""


class ProblemOut(Schema):
    number: int
    problem: str
    statement: str
    entry_point: str
    kind: str
    public_tests: int
    private_tests: int
    has_reference: bool
    difficulty: int
    tags: list[str]
    content_hash: str
    check_state: DatasetProblem.Check
    check_reason: str


class ProblemDetail(ProblemOut):
    content: dict[str, Any]
    """The whole problem with tests and reference, as a line of Grove's format."""


class ProblemList(Schema):
    problems: list[ProblemOut]
    next: int | None


class WhichProblems(Cursor):
    """Filter of a version's problems; `cursor` is `next` of the previous page."""

    q: str = Field("", max_length=200, pattern=WITHOUT_NUL)
    """Words that must all occur in the statement, the id, the entry point or the tags."""
    check: DatasetProblem.Check | None = None


class SplitSizes(Schema):
    """Seed and sizes of splits, as `problems` of a run's settings."""

    seed: int = Field(0, ge=0, lt=2**31)
    train: int = Field(4000, ge=1, lt=2**31)
    validation: int = Field(100, ge=0, lt=2**31)
    test: int = Field(300, ge=0, lt=2**31)


class SplitsOut(Schema):
    """Numbers of the problems, in the order in which a run takes them."""

    validation: list[int]
    test: list[int]
    train: list[int]


class Hardness(Schema):
    number: int
    problem: str
    tried: int
    passed: int
    difficulty: float
    """From 0 (always solved) to 1 (never); shrunk towards the mean where tries are few."""


class HardnessList(Schema):
    runs: int
    """Number of runs whose programs were counted."""
    problems: list[Hardness]


class ReportOut(Schema):
    id: int
    # Not its enum: OpenAPI names enums by their class, and there is another Kind.
    kind: Literal["validation", "overlap"]
    version: int
    other: int | None
    threshold: float | None
    state: DatasetReport.State
    created: datetime
    started: datetime | None
    finished: datetime | None
    deadline: datetime | None
    done: int
    total: int
    error: str
    result: dict[str, Any]

    @staticmethod
    def resolve_version(report: DatasetReport) -> int:
        return report.version_id

    @staticmethod
    def resolve_other(report: DatasetReport) -> int | None:
        return report.other_id

    @staticmethod
    def resolve_total(report: DatasetReport) -> int:
        return report.version.statistics["problems"]


class UseOut(Schema):
    what: str
    name: str
    address: str


class UseList(Schema):
    uses: list[UseOut]
