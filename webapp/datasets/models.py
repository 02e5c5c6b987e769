"""Models of datasets: versions, problems and reports.

Invariants: a version never changes. `content_hash` is its identity: a generated set is identified
by its spec alone, because the generator gives the same problems for the same spec; an uploaded or
derived one by its problems. All problems of the latter are in `artifact`, one per line in Grove's
format; `DatasetProblem` has their offsets, and the results of a check.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from webapp.artifacts.models import Artifact
from webapp.names import NameColumn, TextColumn
from webapp.projects.models import InProjectQuerySet, Project


class Dataset(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="datasets")
    name = NameColumn(max_length=200)
    created = models.DateTimeField(auto_now_add=True)

    objects = InProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="dataset_name_in_project")
        ]

    def __str__(self) -> str:
        return self.name


class DatasetVersionQuerySet(InProjectQuerySet):
    project_path = "dataset__project"


class DatasetVersion(models.Model):
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    """Settings that produce it (generated, or read from a file of the server), or its origin:
    `uploads` [{name, size, sha256}] and `format`, or `derived` {keep}."""
    content_hash = models.CharField(max_length=64)
    left_out = models.JSONField(default=list, blank=True)
    """Problems of the file that could not be used: a sentence each, with location and reason."""
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    note = models.TextField(blank=True)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    """The version that it was derived from, or that it follows."""
    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, related_name="dataset_versions"
    )
    """File of its problems; null if they are not stored here."""
    statistics = models.JSONField(default=dict)
    """See `datasets.parsing.statistics`."""
    faulty = models.PositiveIntegerField(null=True)
    """Number of problems whose own reference fails, or that could not be judged; null until
    checked."""

    objects = DatasetVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number"),
            models.UniqueConstraint(fields=["dataset", "content_hash"], name="dataset_content"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def reference(self) -> str:
        """Its name in a run's `problems.dataset`."""
        return f"dataset:{self.dataset.name}/{self.number}"

    @property
    def settings(self) -> dict[str, Any]:
        """The `problems` settings of a run that reads it."""
        return {"dataset": self.reference} if self.artifact_id else self.spec


class InVersionQuerySet(InProjectQuerySet):
    project_path = "version__dataset__project"


class DatasetProblem(models.Model):
    """One problem of a stored version: the columns of lists and searches, and its offset."""

    class Check(models.TextChoices):
        """Result of the last check of its reference."""

        OPEN = "open", "not checked"
        PASSED = "passed", "reference passes"
        FAILED = "failed", "reference fails"
        UNVERIFIED = "unverified", "no reference"

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="problems")
    number = models.PositiveIntegerField()
    """Number from 1, in the order of the file."""
    problem = models.TextField()
    """Its id in the dataset."""
    content_hash = models.CharField(max_length=64)
    statement = models.TextField()
    entry_point = models.TextField()
    kind = models.CharField(max_length=10)
    public_tests = models.PositiveIntegerField()
    private_tests = models.PositiveIntegerField()
    has_reference = models.BooleanField()
    difficulty = models.PositiveIntegerField()
    tags = ArrayField(TextColumn(), default=list)
    offset = models.BigIntegerField()
    """Offset of its line in the artifact, in bytes."""
    length = models.IntegerField()
    check_state = models.CharField(max_length=10, choices=Check.choices, default=Check.OPEN)
    check_reason = models.TextField(blank=True)

    objects = InVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "number"], name="dataset_problem_number")
        ]
        indexes = [models.Index(fields=["version", "check_state"], name="dataset_problem_check")]


class DatasetReport(models.Model):
    """Long-running job on a version, a check or an overlap; a worker takes it under a lease."""

    class Kind(models.TextChoices):
        VALIDATION = "validation", "check of its references"
        OVERLAP = "overlap", "overlap with another version"

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="reports")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    other = models.ForeignKey(
        DatasetVersion, on_delete=models.CASCADE, null=True, related_name="compared_with"
    )
    threshold = models.FloatField(null=True)
    """Share of common n-grams from which an overlap reports two problems."""
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    """Time at which the running job is abandoned."""
    done = models.PositiveIntegerField(default=0)
    """Number of processed problems, of `statistics["problems"]`."""
    fencing = models.PositiveIntegerField(default=0)
    """Grows with every worker that takes it; writes with an older token are refused."""
    lease_expires = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    result = models.JSONField(default=dict)
    """Result of a check: {tests, passed, failed, unverified, cuts: sentences on limits that the
    operator's caps lowered}; of an overlap: {problems, overlapping, overlaps [{first, second, kind,
    share}], the first of them}."""

    objects = InVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version", "kind"],
                condition=models.Q(state__in=("queued", "running"), kind="validation"),
                name="one_check_at_a_time",
            )
        ]
        indexes = [models.Index(fields=["state", "lease_expires"], name="dataset_report_open")]

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in (self.State.QUEUED, self.State.RUNNING)
