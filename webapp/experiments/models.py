"""Models of experiments and their runs.

Invariant: the Run row is the truth about a run (state, lease, requests to it); the queue and the
engine's process only follow it. Only `experiments.services` changes its state,
`experiments.scheduling.leases` its lease, `telemetry.ingest` its progress, and
`experiments.annotations` its tags, notes and stars.
"""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from engine.events.vocabulary import RunState
from webapp.datasets.models import DatasetVersion
from webapp.names import NameColumn, TextColumn
from webapp.projects.models import InProjectQuerySet, Project, Workspace


class Experiment(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="experiments")
    name = NameColumn(max_length=200)
    config = models.JSONField()
    """The request: recipe and overrides."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created = models.DateTimeField(auto_now_add=True)

    objects = InProjectQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class RunQuerySet(InProjectQuerySet):
    project_path = "experiment__project"

    def that_train(self) -> "RunQuerySet":
        """Excludes searches at test time and evaluations, which have their own lists."""
        # By the joined keys, which Postgres plans as an anti join.
        return self.filter(search__run=None, evaluation__run=None)


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    config = models.JSONField()
    """The resolved `RunConfig`, sufficient to run it again."""
    given = models.JSONField(null=True)
    """The settings as requested, until the worker that starts it has completed them for its machine
    (`run_settings.machine`); null afterwards, and where nothing may be added."""
    variant = models.JSONField(default=dict)
    """Path to value: the settings that distinguish it from the other runs of the request."""
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="forks")
    """The run from whose checkpoint this one started, if it is a fork."""
    parent_step = models.PositiveIntegerField(null=True)
    seed = models.PositiveIntegerField()
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created = models.DateTimeField(auto_now_add=True)

    state = models.CharField(
        max_length=10, choices=[(s.value, s.label) for s in RunState], default=RunState.QUEUED.value
    )
    priority = models.SmallIntegerField(default=0)
    """Of a workspace's queued runs the one of highest priority starts first, then the one that has
    waited longest."""
    stop_requested = models.BooleanField(default=False)
    kill_requested = models.BooleanField(default=False)
    """Stop immediately: updates since the last checkpoint are lost."""
    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    """When the last message for this run was sent to the queue; null if one is due."""
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="")
    """Span of the request that queued it last, if web processes have traces (`dispatch`)."""

    outside = models.BooleanField(default=False)
    """An external engine runs it and sends its events by REST; no worker takes it."""
    tracked = models.BooleanField(default=False, db_default=False)
    """Another program logs it: it is `outside`, `config` is empty, and that program's own settings
    are in `Tracking.config`."""
    lease_owner = models.CharField(max_length=200, blank=True)
    lease_expires = models.DateTimeField(null=True)
    fencing = models.BigIntegerField(default=0)
    """Grows with every lease; writes with an older token are refused."""
    restarts = models.PositiveIntegerField(default=0)
    """Number of lapsed leases that were taken over."""
    engine_pid = models.IntegerField(null=True)
    engine_started = models.FloatField(null=True)
    """Start time of that process, so that a reused pid is never mistaken for it."""

    epoch = models.UUIDField(default=uuid.uuid4)
    """Identity of the event log."""
    head_seq = models.BigIntegerField(default=0)
    """Every event up to this seq is stored."""

    step = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    waiting_name = models.CharField(max_length=200, blank=True)
    waiting_since = models.DateTimeField(null=True)
    waiting_deadline = models.DateTimeField(null=True)
    error = TextColumn(blank=True)
    result = models.JSONField(default=dict)
    """Summary for lists, see `telemetry.ingest.projections`."""

    tags = ArrayField(NameColumn(max_length=40), default=list)
    """People's tags, each once, in their order."""
    notes = models.TextField(blank=True)
    """Markdown."""
    comments_changed = models.PositiveIntegerField(default=0)
    """Number of changes (posts, edits, deletions) of comments on it or its nodes, by which live
    readers notice a change."""
    archived_at = models.DateTimeField(null=True)
    """When it was archived; lists omit it since, unless archived runs are requested."""

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "number"], name="run_number")]
        indexes = [
            models.Index(fields=["-created", "-id"], name="run_newest_first"),
            models.Index(fields=["state", "lease_expires"], name="run_sweep"),
            GinIndex(fields=["tags"], name="run_tags"),
        ]

    def __str__(self) -> str:
        return f"{self.experiment} #{self.number}"

    @property
    def run_state(self) -> RunState:
        return RunState(self.state)

    @property
    def project(self) -> Project:
        return self.experiment.project


class InRunQuerySet(InProjectQuerySet):
    """Base of the querysets of everything that belongs to a run."""

    project_path = "run__experiment__project"


class Tracking(models.Model):
    """What identifies a run that another program logs, and which of its processes does so now.

    Invariant: at most one process writes, the one of `session`. To it, the line n that it logs is
    the event of seq `base` + n; the stored event is `added` further for those that it sends next.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="tracking"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64)
    """The id by which that program resumes it, unique in its project."""
    group = NameColumn(max_length=128, blank=True)
    session = models.UUIDField()
    host = NameColumn(max_length=128, blank=True)
    config = models.JSONField(default=dict)
    """The program's settings, of any shape."""
    base = models.BigIntegerField(default=0)
    added = models.BigIntegerField(default=0, db_default=0)
    """Events that the server has added to the log since this process began: its health warnings."""
    alerts_after = models.FloatField(default=0.0, db_default=0.0)
    """Unix seconds; what happened until then raises no alert: it was imported."""

    objects = InRunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "key"], name="tracked_once")]

    def __str__(self) -> str:
        return self.key


class TrackingSession(models.Model):
    """A process that wrote to a tracked run before another one did."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.UUIDField()
    lines = models.BigIntegerField()
    """Number of its lines that are stored; it continues after them if it writes again."""

    objects = InRunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "session"], name="session_of_tracked_run")
        ]


class Turn(models.Model):
    """Last time that a worker took a run of the workspace from the queue."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    at = models.DateTimeField()


class Star(models.Model):
    """A user's star on a run, visible to that user only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="stars")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    objects = InRunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "run"], name="one_star_each")]


class RunAction(models.Model):
    """A person's action or note on a run. Never changed, never deleted."""

    class Kind(models.TextChoices):
        STARTED = "started", "started it"
        CLONED = "cloned", "made a clone"
        FORKED = "forked", "forked it"
        STOPPED = "stopped", "asked it to stop"  # codespell:ignore
        KILLED = "killed", "killed it"
        RESUMED = "resumed", "resumed it"
        PRIORITY = "priority", "changed its priority"
        NOTE = "note", "wrote"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="actions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    detail = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = InRunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["run", "-id"], name="run_action_newest")]
