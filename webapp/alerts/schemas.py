"""Bodies and responses of the REST of alerts."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StringConstraints

from webapp.alerts.models import (
    Alert,
    AlertRule,
    Channel,
    Delivery,
    DeliveryState,
    Direction,
    Preferences,
    RuleKind,
    Way,
)
from webapp.names import optional_name, required_name
from webapp.rest.json_types import Flag, Real, integer
from webapp.rest.pagination import LARGEST_ID, Cursor

Id = integer(ge=0, le=LARGEST_ID)
_TEXT = r"^[^\x00-\x1f\x7f]*$"
Name = required_name(100)
Tag = optional_name(40)
Series = optional_name(200)
"""Name of a series, or of an agent."""
HealthName = Annotated[str, StringConstraints(max_length=60, pattern=r"^[\w.-]+$")]
Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
"""Hours and minutes."""


_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
OR_MISSING = {"responses": {404: {"description": "Not Found", "content": _PROBLEM}}}
"""Of the lists whose query names a project, which may not exist."""


class Of(Cursor):
    """Your own, or with `project` those of the project."""

    project: int | None = Field(None, ge=0, le=LARGEST_ID)


class NewRule(Schema):
    """A rule of your own, about a workspace or a project of one; with `shared` of the project."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "kind": "metric", "project": 1, "metric": "reward", "direction": "below",
                    "threshold": 0.1, "points": 3,
                }
            ]
        },
    )  # fmt: skip

    kind: RuleKind
    workspace: Id | None = None
    project: Id | None = None
    shared: Flag = False
    """It is the project's: its members are notified, and its maintainers manage it."""
    experiment: Id | None = None
    """Only its runs."""
    tag: Tag = ""
    """Only runs with it."""
    minutes: integer(ge=1, le=10080) | None = None
    """`run-stalled`: how long without progress."""
    health: list[HealthName] = Field([], max_length=20)
    """`health`: names of health rules; empty is any."""
    metric: Series = ""
    """`metric`: name of a series, as in the list of a run's metrics."""
    agent: Series = ""
    """`metric`: the agent whose series it is, `*` for each; blank if `metric` names the agent."""
    direction: Direction | None = None
    threshold: Real | None = None
    points: integer(ge=1, le=1000) = 1
    """`metric`: consecutive points beyond the threshold."""
    percent: integer(ge=1, le=99) | None = None
    """`quota`: used at least. `disk`: free less than."""
    inbox: Flag = True
    mail: Flag = False
    channels: list[Id] = Field([], max_length=20)


class ChangedRule(Schema):
    """Fields that are left out keep their values; of another kind than before those that do not
    belong to it go. `workspace` and `project` replace both; the owner stays."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"threshold": 0.2, "inbox": True}]}
    )

    kind: RuleKind | None = None
    workspace: Id | None = None
    project: Id | None = None
    experiment: Id | None = None
    tag: Tag | None = None
    minutes: integer(ge=1, le=10080) | None = None
    health: list[HealthName] | None = Field(None, max_length=20)
    metric: Series | None = None
    agent: Series | None = None
    direction: Direction | None = None
    threshold: Real | None = None
    points: integer(ge=1, le=1000) | None = None
    percent: integer(ge=1, le=99) | None = None
    inbox: Flag | None = None
    mail: Flag | None = None
    channels: list[Id] | None = Field(None, max_length=20)


class RuleOut(Schema):
    id: int
    kind: RuleKind
    summary: str
    """What it looks for, in one sentence."""
    workspace: int | None
    project: int | None
    shared: bool
    experiment: int | None
    tag: str
    minutes: int | None
    health: list[str]
    metric: str
    agent: str
    direction: Direction | Literal[""]
    threshold: float | None
    points: int
    percent: int | None
    inbox: bool
    mail: bool
    channels: list[int]
    created: datetime

    @staticmethod
    def resolve_workspace(rule: AlertRule) -> int | None:
        return rule.workspace_id

    @staticmethod
    def resolve_project(rule: AlertRule) -> int | None:
        return rule.project_id

    @staticmethod
    def resolve_shared(rule: AlertRule) -> bool:
        return rule.user_id is None

    @staticmethod
    def resolve_experiment(rule: AlertRule) -> int | None:
        return rule.experiment_id

    @staticmethod
    def resolve_channels(rule: AlertRule) -> list[int]:
        return sorted(one.pk for one in rule.channels.all())


class RuleList(Schema):
    rules: list[RuleOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class NewChannel(Schema):
    """A channel of your own, or with `project` of that project."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"kind": "webhook", "name": "pager", "url": "https://pager.example/grove"}]
        },
    )

    kind: Literal["webhook", "slack"]
    name: Name
    url: Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=_TEXT)]
    """Public, or in a network that the operator allows."""
    project: Id | None = None


class ChannelOut(Schema):
    id: int
    kind: Way
    name: str
    origin: str
    """Scheme and host of its address; the rest may be a secret, and is not shown."""
    project: int | None
    created: datetime
    failures: int
    """Failed attempts in a row."""
    disabled_at: datetime | None
    disabled_reason: str
    secret: str | None = None
    """Of a webhook, right after it was created or its secret replaced: shown once."""

    @staticmethod
    def resolve_project(channel: Channel) -> int | None:
        return channel.project_id


class ChannelList(Schema):
    channels: list[ChannelOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class ChannelAction(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"do": "rotate"}]})

    do: Literal["test", "rotate", "enable"]


class DeliveryOut(Schema):
    id: uuid.UUID
    """The `webhook-id` of its request."""
    way: Way
    channel: int | None
    state: DeliveryState
    attempts: int
    due_at: datetime
    """When it is tried next, while it is pending."""
    sent_at: datetime | None
    status: int | None
    """HTTP status of the last response."""
    answer: str
    """The beginning of the last response."""
    error: str

    @staticmethod
    def resolve_channel(delivery: Delivery) -> int | None:
        return delivery.channel_id


class AlertOut(Schema):
    id: int
    kind: RuleKind | Literal["test"]
    rule: int | None
    """Null once the rule was deleted, and of a test."""
    run: uuid.UUID | None
    title: str
    cause: str
    since: datetime
    created: datetime
    path: str
    """Address within the site of what it is about."""
    deliveries: list[DeliveryOut]
    """Beyond the inbox."""

    @staticmethod
    def resolve_rule(alert: Alert) -> int | None:
        return alert.rule_id

    @staticmethod
    def resolve_run(alert: Alert) -> uuid.UUID | None:
        return alert.run_id

    @staticmethod
    def resolve_deliveries(alert: Alert) -> list[Delivery]:
        return list(alert.deliveries.all())


class AlertList(Schema):
    alerts: list[AlertOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class PreferencesOut(Schema):
    own_failures: bool
    """Whether each own run that fails is noticed in the inbox, without a rule."""
    quiet_from: str | None
    """As in 22:00. Mail and own webhooks wait until the quiet hours end; the inbox does not."""
    quiet_until: str | None
    time_zone: str

    @staticmethod
    def resolve_quiet_from(one: Preferences) -> str | None:
        return one.quiet_from.strftime("%H:%M") if one.quiet_from else None

    @staticmethod
    def resolve_quiet_until(one: Preferences) -> str | None:
        return one.quiet_until.strftime("%H:%M") if one.quiet_until else None


class ChangedPreferences(Schema):
    """Fields that are left out keep their values; null ends the quiet hours."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Europe/Vienna"}
            ]
        },
    )

    own_failures: Flag | None = None
    quiet_from: Clock | None = None
    quiet_until: Clock | None = None
    time_zone: str | None = Field(None, max_length=60, pattern=_TEXT)


class Muted(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"muted": True}]})

    muted: Flag
