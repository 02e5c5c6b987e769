"""REST schemas of models, for requests and responses."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from ninja import Path, Schema
from pydantic import ConfigDict, Field, StringConstraints

from webapp.registry.models import Evaluation, Model, ModelVersion, Promotion, PromotionState
from webapp.registry.promotion import MOST_REASON_CHARS, NAME
from webapp.registry.versions.metrics import evaluations_of, metrics_of
from webapp.rest.json_types import Flag, Integer, integer
from webapp.rest.pagination import LARGEST_ID

Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
Number = Annotated[int, Path(ge=0, lt=2**31)]
Words = Annotated[str, StringConstraints(max_length=MOST_REASON_CHARS, pattern=r"^[^\x00]*$")]


def example(**fields: Any) -> ConfigDict:
    """Returns a configuration that refuses unknown fields and has one example for the reference."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


class NewModel(Schema):
    model_config = example(project=1, name="oak")

    project: Integer = Field(ge=0, le=LARGEST_ID)
    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    uploads: list[uuid.UUID] = Field([], max_length=600)
    """Finished uploads of kind model, the files of its first version."""


class NewModelVersion(Schema):
    model_config = example(uploads=["3fa85f64-5717-4562-b3fc-2c963f66afa6"], parent=1)

    uploads: list[uuid.UUID] = Field(min_length=1, max_length=600)
    """Finished uploads of kind model: all files of the Hugging Face layout."""
    parent: integer(ge=0, lt=2**31) | None = None
    """Number of the parent version of this model."""


class Checkpoint(Schema):
    model_config = example(agent="oak")

    agent: str = Field(min_length=1, max_length=40, pattern=r"^[^\x00]*$")
    """Agent of the run whose weights are registered."""


class VersionChange(Schema):
    model_config = example(notes="Trained on the cleaned problems.")

    notes: str = Field(max_length=20_000, pattern=r"^[^\x00]*$")
    """People's notes, in markdown."""


class NewPromotion(Schema):
    model_config = example(alias="champion", version=3, reason="Best on the held-out problems.")

    alias: str = Field(min_length=1, max_length=40, pattern=f"^{NAME}$")
    version: integer(ge=0, lt=2**31) | None
    """Number of the version; null removes the alias."""
    reason: Annotated[Words, StringConstraints(min_length=1)]


class Decision(Schema):
    model_config = example(words="I have read its failures: agreed.")

    words: Words = ""


class NewEvaluation(Schema):
    model_config = example(dataset_version=1, problems=300, samples=4, nodes=8)

    dataset_version: Integer = Field(ge=0, le=LARGEST_ID)
    problems: Integer = Field(300, ge=1, le=1_000_000)
    """Maximum number of problems."""
    samples: Integer = Field(1, ge=1, le=256)
    """Answers per problem."""
    nodes: Integer = Field(1, ge=1, le=5000)
    """Nodes of the search tree of each problem; 1 means no search."""
    seed: Integer = Field(0, ge=0, lt=2**31)


class SecondPair(Schema):
    model_config = example(second_pair=True)

    second_pair: Flag
    """Whether a promotion in this workspace requires a second person's approval."""


class FileOut(Schema):
    name: str
    size: int
    sha256: str


class VersionFigure(Schema):
    source: str
    """A dataset version, or a split of the problems of the version's run."""
    figure: str
    value: float
    standard_error: float | None
    problems: int


class VersionRow(Schema):
    id: int
    model: int
    number: int
    sha256: str
    """Digest of its weight file; of several files, of the list of them."""
    parameters: int
    created: datetime
    run: uuid.UUID | None
    agent: str
    step: int | None
    dataset_version: str | None
    parent: str | None
    metadata: dict[str, Any]


class ModelVersionOut(VersionRow):
    @staticmethod
    def resolve_model(version: ModelVersion) -> int:
        return version.model_id

    @staticmethod
    def resolve_run(version: ModelVersion) -> uuid.UUID | None:
        return version.run_id

    @staticmethod
    def resolve_dataset_version(version: ModelVersion) -> str | None:
        return str(version.dataset_version) if version.dataset_version else None

    @staticmethod
    def resolve_parent(version: ModelVersion) -> str | None:
        return str(version.parent) if version.parent else None


class VersionDetail(ModelVersionOut):
    aliases: list[str]
    files: list[FileOut]
    metrics: list[VersionFigure]
    children: list[str]
    runs: list[uuid.UUID]
    """Runs that started from it, newest first; 100 at most."""
    notes: str

    @staticmethod
    def resolve_aliases(version: ModelVersion) -> list[str]:
        return [alias.name for alias in version.aliases.all()]

    @staticmethod
    def resolve_files(version: ModelVersion) -> list[Any]:
        return list(version.files.all())

    @staticmethod
    def resolve_metrics(version: ModelVersion) -> list[Any]:
        return metrics_of(version, evaluations_of(version))

    @staticmethod
    def resolve_children(version: ModelVersion) -> list[str]:
        return [str(child) for child in version.children.select_related("model").order_by("pk")]

    @staticmethod
    def resolve_runs(version: ModelVersion) -> list[uuid.UUID]:
        uses = version.uses.filter(run__evaluation=None).order_by("-run__created")
        return list(dict.fromkeys(uses.values_list("run", flat=True)[:100]))


class ModelOut(Schema):
    id: int
    name: str
    project: int
    created: datetime
    version_count: int
    aliases: dict[str, int]
    """Number of the version, by alias."""
    versions: list[ModelVersionOut]
    """The ten newest."""

    @staticmethod
    def resolve_project(model: Model) -> int:
        return model.project_id

    @staticmethod
    def resolve_aliases(model: Model) -> dict[str, int]:
        return {alias.name: alias.version.number for alias in model.named}

    @staticmethod
    def resolve_versions(model: Model) -> list[ModelVersion]:
        return model.newest


class PromotionOut(Schema):
    id: int
    alias: str
    number: int | None
    """Number of the version; null removes the alias."""
    previous: int | None
    reason: str
    state: PromotionState
    asked_by: str
    asked: datetime  # codespell:ignore
    decided_by: str | None
    """The second person; null where none was required, or the move is pending."""
    decided: datetime | None
    decision: str

    @staticmethod
    def resolve_asked_by(promotion: Promotion) -> str:
        return promotion.asked_by.username

    @staticmethod
    def resolve_decided_by(promotion: Promotion) -> str | None:
        return promotion.decided_by.username if promotion.decided_by else None


class EvaluationOut(Schema):
    id: int
    dataset_version: str
    run: uuid.UUID
    """Run of the evaluation, stopped, resumed and monitored as any other."""
    state: str
    error: str
    created: datetime
    figures: dict[str, Any]
    """Value, standard_error and problems by name; empty until the evaluation has finished."""

    @staticmethod
    def resolve_dataset_version(evaluation: Evaluation) -> str:
        return str(evaluation.dataset_version)

    @staticmethod
    def resolve_run(evaluation: Evaluation) -> uuid.UUID:
        return evaluation.run_id

    @staticmethod
    def resolve_state(evaluation: Evaluation) -> str:
        return evaluation.run.state

    @staticmethod
    def resolve_error(evaluation: Evaluation) -> str:
        return evaluation.run.error


class ModelList(Schema):
    models: list[ModelOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class VersionList(Schema):
    versions: list[ModelVersionOut]
    next: int | None


class PromotionList(Schema):
    promotions: list[PromotionOut]
    next: int | None


class ModelEvaluationList(Schema):
    evaluations: list[EvaluationOut]
    next: int | None


class DifferingOut(Schema):
    path: str
    values: list[str | None]
    """Values in the order of the versions; null where a version has none."""


class VersionDifference(Schema):
    figure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    problems: int
    sentence: str


class VersionPairOut(Schema):
    version: int
    label: str
    source: str
    """The problems on which both were evaluated."""
    figures: list[VersionDifference]


class VersionComparison(Schema):
    versions: list[ModelVersionOut]
    labels: list[str]
    lineage: list[DifferingOut]
    settings: list[DifferingOut]
    evaluations: list[VersionPairOut]
