"""Exports: files that people request, of a project's runs or of their telemetry, as one table.

Invariants: the row is the truth, and the queue: a worker takes the oldest that is queued, and its
`attempt` lets only the latest taker record how it ended. A file exists while its row is ready; its
path depends on the row's id alone. After `expires` both are deleted.
"""

from __future__ import annotations

import uuid
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.db import models

from webapp.experiments.models import Run
from webapp.projects.models import InProjectQuerySet, Project


class ExportState(StrEnum):
    """State of an export; `colour` is the name of a palette entry."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"

    @property
    def label(self) -> str:
        return {"running": "Being written"}.get(self.value, self.value.capitalize())

    @property
    def colour(self) -> str:
        return {"queued": "grey", "running": "blue", "ready": "green", "failed": "red"}[self.value]

    @property
    def is_over(self) -> bool:
        return self in (ExportState.READY, ExportState.FAILED)


class Table(models.TextChoices):
    RUNS = "runs", "Runs"
    METRICS = "metrics", "Metrics"
    NODES = "nodes", "Nodes of the trees"
    EVALUATIONS = "evaluations", "Evaluations"
    LOGGED = "logged", "Logged values"


class Format(models.TextChoices):
    CSV = "csv", "CSV"
    JSONL = "jsonl", "JSON Lines"
    PARQUET = "parquet", "Parquet"

    @property
    def media_type(self) -> str:
        return {
            "csv": "text/csv; charset=utf-8",
            "jsonl": "application/x-ndjson",
            "parquet": "application/vnd.apache.parquet",
        }[self.value]


class Export(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="exports")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="exports")
    """The only run of the export; null: the project's runs that match `filters`."""
    table = models.CharField(max_length=12, choices=Table.choices)
    format = models.CharField(max_length=8, choices=Format.choices)
    filters = models.JSONField(default=dict)
    """Filters of the list of runs: fields of `experiments.runs_list.listing.RunQuery` by name."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    state = models.CharField(
        max_length=8,
        choices=[(state.value, state.label) for state in ExportState],
        default=ExportState.QUEUED.value,
    )
    attempt = models.PositiveIntegerField(default=0)
    """Incremented each time that a worker takes it."""
    started = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    """When its taker must be done."""
    finished = models.DateTimeField(null=True)
    expires = models.DateTimeField(null=True)
    """When it is removed, once it is over."""
    error = models.TextField(blank=True)
    """The first cause of its failure, in one sentence."""
    rows = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0)
    """Bytes of the file."""
    sha256 = models.CharField(max_length=64, blank=True)

    objects = InProjectQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["state", "created"], name="export_queue")]

    def __str__(self) -> str:
        return f"{self.get_table_display()} of {self.run or self.project}"

    @property
    def export_state(self) -> ExportState:
        return ExportState(self.state)

    @property
    def path(self) -> Path:
        return exports_directory() / f"{self.pk}.{self.format}"

    @property
    def file_name(self) -> str:
        """The file's name for a download; ASCII, without anything that a path could interpret."""
        of = f"run-{str(self.run_id)[:8]}" if self.run_id else f"project-{self.project_id}"
        return f"grove-{of}-{self.table}-{self.created:%Y%m%d-%H%M%S}.{self.format}"


def exports_directory() -> Path:
    return settings.GROVE_VAR / "exports"
