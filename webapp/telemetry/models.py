"""The stored log of every run, and the series of numbers that it tells.

Invariants:
- Of one run, the stored seqs are exactly 1..`Run.head_seq`, and rows never change. Rows are written
  by `telemetry.ingest` alone.
- Blocks and chunks refer to metrics that exist: triggers check it, once for each statement.
- Series follow from the log: they are written in the transaction that stores the events, by
  `telemetry.metrics` alone. Of one metric the positions are exactly 0..`Metric.points` - 1; block
  `index` holds those from `index` * 32 on. Its chunks of a level are all those that are full: chunk
  `index` of level n stands for the points at `index` * 32**n and the following 32**n.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from webapp.experiments.models import InRunQuerySet, Run
from webapp.projects.models import InProjectQuerySet


class Event(models.Model):
    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    time = models.DateTimeField()
    kind = models.CharField(max_length=40)
    tree = models.BigIntegerField(null=True)
    node = models.IntegerField(null=True)
    payload = models.JSONField()

    objects = InRunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["run", "kind", "seq"], name="event_kind"),
            models.Index(fields=["run", "tree", "seq"], name="event_tree"),
        ]


class Metric(models.Model):
    """One series of numbers of one run, with its newest point."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="metrics", db_index=False)
    name = models.CharField(max_length=200)
    points = models.BigIntegerField(default=0)
    value = models.FloatField(default=0)
    step = models.BigIntegerField(default=0)
    time = models.FloatField(default=0)
    tokens = models.BigIntegerField(default=0)
    nodes = models.BigIntegerField(default=0)

    objects = InRunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="metric_of_run")]

    def __str__(self) -> str:
        return self.name


class OfMetricQuerySet(InProjectQuerySet):
    project_path = "metric__run__experiment__project"


class Block(models.Model):
    """32 points in a row, the last block of a metric fewer: columns of equal length, one entry for
    each number that was told, and where the run stood then."""

    pk = models.CompositePrimaryKey("metric_id", "index")
    metric = models.ForeignKey(
        Metric, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    index = models.BigIntegerField()
    """Position of its first point, divided by 32."""
    seq = ArrayField(models.BigIntegerField())
    """Of the event that told it."""
    step = ArrayField(models.BigIntegerField())
    time = ArrayField(models.FloatField())
    """Seconds since the first event of the run."""
    tokens = ArrayField(models.BigIntegerField())
    """Written by all agents so far; `nodes` likewise."""
    nodes = ArrayField(models.BigIntegerField())
    value = ArrayField(models.FloatField())

    objects = OfMetricQuerySet.as_manager()


class Chunk(models.Model):
    """32**level points in a row, summed up."""

    pk = models.CompositePrimaryKey("metric_id", "level", "index")
    metric = models.ForeignKey(
        Metric, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    least = models.FloatField()
    most = models.FloatField()
    total = models.FloatField()
    step_from = models.BigIntegerField()
    step_to = models.BigIntegerField()
    time_from = models.FloatField()
    time_to = models.FloatField()
    tokens_from = models.BigIntegerField()
    tokens_to = models.BigIntegerField()
    nodes_from = models.BigIntegerField()
    nodes_to = models.BigIntegerField()

    objects = OfMetricQuerySet.as_manager()


class TakenBack(models.Model):
    """At most 32 points in a row that a resumed run took back, since it did their steps again: who
    looks at a moment before that sees them. Columns as those of a block."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=200)
    """Of the metric."""
    taken_at = models.BigIntegerField()
    """Seq of the `run.resumed`."""
    seq = ArrayField(models.BigIntegerField())
    step = ArrayField(models.BigIntegerField())
    time = ArrayField(models.FloatField())
    tokens = ArrayField(models.BigIntegerField())
    nodes = ArrayField(models.BigIntegerField())
    value = ArrayField(models.FloatField())

    objects = InRunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["run", "name", "taken_at"], name="taken_back")]


class Clock(models.Model):
    """Where a run stood at its newest stored event. Without one, its series are yet to be made."""

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="clock"
    )
    origin = models.FloatField()
    """Unix seconds of the first event."""
    step = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    nodes = models.BigIntegerField(default=0)

    objects = InRunQuerySet.as_manager()
