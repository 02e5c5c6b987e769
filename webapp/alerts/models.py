"""Alert rules, the channels of their notices, and what was sent.

Invariants: a rule belongs to one person, or to a project whose maintainers manage it; an `Alert`
has a key of its own, so one occasion of one rule and run is recorded once; a `Delivery` is written
in the transaction of its alert, and only `alerts.deliveries` changes it. The secret of a webhook is
derived from the server's key (`alerts.signatures`) and stored nowhere.
"""

from __future__ import annotations

import secrets
import uuid
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from webapp.accounts.models import User
from webapp.experiments.models import Experiment, Run
from webapp.names import NameColumn, TextColumn
from webapp.projects.models import Project, Workspace


class RuleKind(models.TextChoices):
    """What a rule looks for."""

    RUN_ENDED = "run-ended", "A run ends, for any reason"
    RUN_FAILED = "run-failed", "A run fails"
    RUN_STALLED = "run-stalled", "A run makes no progress"
    HEALTH = "health", "A health warning opens"
    METRIC = "metric", "A metric crosses a threshold"
    QUOTA = "quota", "A quota is nearly used"
    DISK = "disk", "The server's disk is nearly full"


TEST = "test"
"""RuleKind of an alert that a person sent to see whether notices arrive."""


class Direction(models.TextChoices):
    ABOVE = "above"
    BELOW = "below"


class Way(models.TextChoices):
    """How a notice leaves the site; the inbox is a part of it."""

    MAIL = "mail", "Mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack-compatible"


CHANNEL_KINDS = [(way.value, way.label) for way in (Way.WEBHOOK, Way.SLACK)]


class OwnedQuerySet(models.QuerySet):
    """Base of the querysets of what one person or one project has."""

    def visible_to(self, user: User) -> OwnedQuerySet:
        """The user's own, except through a token, and those of the projects that they see."""
        shared = Q(user=None, project__in=Project.objects.visible_to(user).values("pk"))
        return self.filter(shared if user.token else shared | self._own(user))

    def _own(self, user: User) -> Q:
        return Q(user=user.pk)


class AlertQuerySet(OwnedQuerySet):
    def _own(self, user: User) -> Q:
        """Without those of projects that the user no longer sees."""
        projects = Project.objects.visible_to(user).values("pk")
        return Q(user=user.pk) & (Q(project=None) | Q(project__in=projects))


class RuleQuerySet(OwnedQuerySet):
    def _own(self, user: User) -> Q:
        """Without those about what the user no longer sees."""
        projects = Project.objects.visible_to(user).values("pk")
        workspaces = Workspace.objects.visible_to(user).values("pk")
        return (
            Q(user=user.pk)
            & (Q(project=None) | Q(project__in=projects))
            & (Q(workspace=None) | Q(workspace__in=workspaces))
        )


class Channel(models.Model):
    """An address to which notices are posted: of one person, or of one project."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, related_name="alert_channels"
    )
    kind = models.CharField(max_length=8, choices=CHANNEL_KINDS)
    name = NameColumn(max_length=100)
    url = models.CharField(max_length=2000)
    """May itself be a secret, as Slack's are: shown by `origin` only."""
    nonce = models.CharField(max_length=32, default=partial(secrets.token_hex, 16))
    """The webhook's secret follows from it; a new one is a new secret."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    failures = models.PositiveIntegerField(default=0)
    """Failed attempts in a row."""
    failing_since = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_reason = models.CharField(max_length=300, blank=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, project__isnull=False) | Q(user__isnull=False, project=None),
                name="alert_channel_has_one_owner",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Scheme and host of the address: the rest may be a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


class AlertRule(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="alert_rules"
    )
    """Whose subscription it is; null is a rule of the project."""
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, related_name="+")
    """Null: it is about the whole installation, as only `RuleKind.DISK` is."""
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, related_name="alert_rules"
    )
    """Null: it is about all projects of the workspace that the person sees."""
    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """The only experiment that it is about; null does not filter."""
    tag = NameColumn(max_length=40, blank=True)
    """Only runs with this tag; blank does not filter."""
    kind = models.CharField(max_length=12, choices=RuleKind.choices)
    minutes = models.PositiveIntegerField(null=True)
    """Of a stalled run: how long without progress."""
    health = ArrayField(models.CharField(max_length=60), default=list)
    """Names of health rules; empty is any."""
    metric = NameColumn(max_length=200, blank=True)
    """Name of a series (`client.scalars`), without the agent that is named apart."""
    agent = NameColumn(max_length=200, blank=True)
    """The agent whose series it is, `*` for each; blank if the series has none."""
    direction = models.CharField(max_length=5, choices=Direction.choices, blank=True)
    threshold = models.FloatField(null=True)
    points = models.PositiveIntegerField(default=1)
    """Consecutive points beyond the threshold."""
    percent = models.PositiveSmallIntegerField(null=True)
    """Of a quota: used at least. Of the disk: free less than."""
    inbox = models.BooleanField(default=True)
    mail = models.BooleanField(default=False)
    channels = models.ManyToManyField(Channel, related_name="rules")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(null=True)
    """When what it looks for was last changed; points from before do not count."""

    objects = RuleQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(project__isnull=False),
                name="alert_rule_has_an_owner",
            ),
            models.CheckConstraint(
                condition=Q(kind=RuleKind.DISK, workspace=None, project=None)
                | (~Q(kind=RuleKind.DISK) & Q(workspace__isnull=False)),
                name="alert_rule_has_a_scope",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "kind"], name="alert_rule_scope")]

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """What it looks for, in one sentence without a full stop."""
        match self.kind:
            case RuleKind.RUN_STALLED:
                return f"A run makes no progress for {self.minutes} minutes"
            case RuleKind.HEALTH if self.health:
                return f"A health warning opens: {', '.join(self.health)}"
            case RuleKind.METRIC:
                times = f" for {self.points} points in a row" if self.points > 1 else ""
                return f"{self.series} is {self.direction} {self.threshold:g}{times}"
            case RuleKind.QUOTA:
                return f"At least {self.percent} % of a quota is used"
            case RuleKind.DISK:
                return f"Less than {self.percent} % of the server's disk is free"
        return RuleKind(self.kind).label

    @property
    def series(self) -> str:
        return f"{self.metric}.{self.agent}" if self.agent else self.metric

    @property
    def scope(self) -> str:
        """Where it applies, in words."""
        place = str(self.project or self.workspace or "this installation")
        filters = [f"experiment {self.experiment}"] if self.experiment_id else []
        filters += [f"tag {self.tag}"] if self.tag else []
        return ", ".join([place, *filters])


class RuleStateQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> RuleStateQuerySet:
        """States of the rules that the user sees."""
        return self.filter(rule__in=AlertRule.objects.visible_to(user).values("pk"))


class RuleState(models.Model):
    """Where the evaluation of a rule over a series or a level is."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="states")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    subject = models.CharField(max_length=300)
    """The series of the run, or what has the level: `disk`, `files of project 3`."""
    seen = models.BigIntegerField(default=0)
    """Seq of the event of the newest point that was evaluated."""
    beyond = models.PositiveIntegerField(default=0)
    """The newest points in a row beyond the threshold."""
    since = models.FloatField(null=True)
    """Unix seconds of the first of those."""
    fired = models.PositiveIntegerField(default=0)
    """How often it fired: a part of each alert's key."""

    objects = RuleStateQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "run", "subject"], name="alert_state_once", nulls_distinct=False
            )
        ]


class Alert(models.Model):
    """One occasion of one rule; of a test, of none."""

    key = models.CharField(max_length=400, unique=True)
    kind = models.CharField(max_length=12)
    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, related_name="alerts")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """Whose rule it was; null is the project's."""
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    title = NameColumn(max_length=300)
    cause = TextColumn(blank=True)
    since = models.DateTimeField()
    path = models.CharField(max_length=300)
    """Address within the site of what it is about."""
    created = models.DateTimeField(auto_now_add=True)

    objects = AlertQuerySet.as_manager()

    def __str__(self) -> str:
        return self.title


class DeliveryState(models.TextChoices):
    PENDING = "pending", "Pending"
    SENT = "sent", "Sent"
    FAILED = "failed", "Failed"

    @property
    def colour(self) -> str:
        return {"pending": "grey", "sent": "green", "failed": "red"}[self.value]


class DeliveryQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> DeliveryQuerySet:
        """Those of the alerts that `user` sees."""
        return self.filter(alert__in=Alert.objects.visible_to(user).values("pk"))


class Delivery(models.Model):
    """One notice on its way out; the id is the receiver's key against doubles."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    way = models.CharField(max_length=8, choices=Way.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """Whose quiet hours hold; null holds none."""
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, null=True, related_name="deliveries"
    )
    """Null is mail."""
    state = models.CharField(
        max_length=8, choices=DeliveryState.choices, default=DeliveryState.PENDING
    )
    created = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField()
    """When it is tried next. Taking it sets the time of the next attempt, so that a delivery whose
    worker was killed is tried again."""
    deadline = models.DateTimeField()
    """After this it is given up."""
    attempts = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True)
    """HTTP status of the last response."""
    answer = models.CharField(max_length=200, blank=True)
    """The beginning of the last response."""
    error = models.CharField(max_length=300, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="alert_due"),
            models.Index(fields=["user", "sent_at"], name="alert_mailed"),
        ]

    @property
    def delivery_state(self) -> DeliveryState:
        return DeliveryState(self.state)


class PersonalQuerySet(models.QuerySet):
    """Base of the querysets of what is of one person alone."""

    def visible_to(self, user: User) -> PersonalQuerySet:
        """The user's own, except through a token."""
        return self.none() if user.token else self.filter(user=user.pk, user__is_active=True)


class Mute(models.Model):
    """A person gets no notices of a run."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="mutes")

    objects = PersonalQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "run"], name="alert_mute_once")]


class Preferences(models.Model):
    """How one person is notified; a person without a row has the defaults."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    own_failures = models.BooleanField(default=True)
    """An inbox notice of each own run that fails."""
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    """Both or neither; until before from is until the next day."""
    time_zone = models.CharField(max_length=60, default="UTC")

    objects = PersonalQuerySet.as_manager()
