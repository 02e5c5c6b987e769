"""The stored log of every run.

Invariant: of one run, the stored seqs are exactly 1..`Run.head_seq`, and rows never change.
Rows are written by `telemetry.ingest` alone.
"""

from django.db import models

from webapp.experiments.models import Run
from webapp.projects.models import InProjectQuerySet


class EventQuerySet(InProjectQuerySet):
    project_path = "run__experiment__project"


class Event(models.Model):
    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    time = models.DateTimeField()
    kind = models.CharField(max_length=40)
    tree = models.BigIntegerField(null=True)
    node = models.IntegerField(null=True)
    payload = models.JSONField()

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["run", "kind", "seq"], name="event_kind"),
            models.Index(fields=["run", "tree", "seq"], name="event_tree"),
        ]
