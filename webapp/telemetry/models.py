"""Models of the stored log of every run, and of its metrics.

Invariants:
- Of one run, the stored seqs are exactly 1..`Run.head_seq`, and rows never change. Only
  `telemetry.ingest` writes rows.
- Logged names and values follow from the log too: only `telemetry.ingest.logged` writes them.
- Blocks and chunks refer to metrics that exist: triggers check it, once per statement.
- Metrics follow from the log: only `telemetry.series.metrics` writes them, in the transaction that
  stores the events. Of one metric the positions are exactly 0..`Metric.points` - 1; block `index`
  holds those from `index` * 32 on. A metric has exactly the full chunks of each level: chunk
  `index` of level n summarizes the 32**n points from position `index` * 32**n on.
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
    """One metric of one run, with its newest point."""

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
    """32 consecutive points, fewer in a metric's last block: columns of equal length, one entry per
    recorded number, with the run's position at that event."""

    pk = models.CompositePrimaryKey("metric_id", "index")
    metric = models.ForeignKey(
        Metric, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    index = models.BigIntegerField()
    """Position of its first point, divided by 32."""
    seq = ArrayField(models.BigIntegerField())
    """Seq of the event that reported it."""
    step = ArrayField(models.BigIntegerField())
    time = ArrayField(models.FloatField())
    """Seconds since the first event of the run."""
    tokens = ArrayField(models.BigIntegerField())
    """Tokens written by all agents so far; `nodes` likewise."""
    nodes = ArrayField(models.BigIntegerField())
    value = ArrayField(models.FloatField())

    objects = OfMetricQuerySet.as_manager()


class Chunk(models.Model):
    """Summary of 32**level consecutive points."""

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


class Gap(models.Model):
    """An event between two points of a metric at which its number was null or not finite, the first
    of several in a row. No line is drawn across it."""

    pk = models.CompositePrimaryKey("metric_id", "position")
    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="+", db_index=False)
    position = models.BigIntegerField()
    """Number of the metric's points before it, at least 1."""
    seq = models.BigIntegerField()
    step = models.BigIntegerField()
    time = models.FloatField()
    tokens = models.BigIntegerField()
    nodes = models.BigIntegerField()

    objects = OfMetricQuerySet.as_manager()


class TakenBack(models.Model):
    """At most 32 consecutive points that a resumed run discarded because it repeated their steps; a
    view as of an earlier event still includes them. Columns as those of a block."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=200)
    """Name of the metric."""
    taken_at = models.BigIntegerField()
    """Seq of the `run.resumed` that discarded them."""
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
    """Position of a run at its newest stored event. A run without one has no metrics stored yet."""

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="clock"
    )
    origin = models.FloatField()
    """Unix seconds of the first event."""
    step = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    nodes = models.BigIntegerField(default=0)

    objects = InRunQuerySet.as_manager()


class LoggedName(models.Model):
    """A name under which a program logged texts, tables, histograms, images or numbers that are
    not finite (`engine.events.vocabulary.MetricLogged`); finite numbers are a `Metric`."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    """The field of the event: texts, tables, histograms, images or nonfinite."""
    name = models.CharField(max_length=200)

    objects = InRunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "kind", "name"], name="logged_name")]

    def __str__(self) -> str:
        return self.name


class OfLoggedNameQuerySet(InProjectQuerySet):
    project_path = "logged__run__experiment__project"


class LoggedValue(models.Model):
    """An event that holds a value of a logged name."""

    pk = models.CompositePrimaryKey("logged_id", "seq")
    logged = models.ForeignKey(
        LoggedName, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    seq = models.BigIntegerField()

    objects = OfLoggedNameQuerySet.as_manager()


class TrackedHealth(models.Model):
    """What the health of a run that another program logs was judged by so far; only
    `telemetry.ingest.health` writes it."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="+")
    state = models.BinaryField()
    """`engine.health.tracked.State` as MessagePack."""

    objects = InRunQuerySet.as_manager()


class Drafts(models.Model):
    """What the nodes in flight of a run have so far, for the users who watch now. Not a part of the
    log: `telemetry.drafts` says who writes it."""

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="drafts"
    )
    watched_until = models.DateTimeField()
    version = models.BigIntegerField(default=0)
    body = models.BinaryField(default=b"")
    """JSON list of `engine.events.drafts.Draft`; empty before the first ones."""

    objects = InRunQuerySet.as_manager()
