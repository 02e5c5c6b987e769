"""Reads of rules, channels and alerts. What a person sees starts with `visible_to`."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.alerts.models import Alert, AlertRule, Channel
from webapp.projects.models import Project

_RULE = "workspace", "project", "experiment", "user"


def visible_rules(user: User) -> QuerySet[AlertRule]:
    """Rules that `user` sees: their own, and those of their projects."""
    rules = AlertRule.objects.visible_to(user).select_related(*_RULE)
    return rules.prefetch_related("channels").order_by("pk")


def rules_of(user: User, project: Project | None) -> QuerySet[AlertRule]:
    """Rules of the project, or without one the user's own."""
    rules = visible_rules(user)
    return rules.filter(project=project, user=None) if project else rules.filter(user=user.pk)


def visible_channels(user: User) -> QuerySet[Channel]:
    """Channels of `user` and of their projects."""
    return Channel.objects.visible_to(user).select_related("project", "user").order_by("pk")


def channels_of(user: User, project: Project | None) -> QuerySet[Channel]:
    channels = visible_channels(user)
    return channels.filter(project=project) if project else channels.filter(user=user.pk)


def alerts_of(user: User, project: Project | None) -> QuerySet[Alert]:
    """Alerts of the project's rules, or without one those of the user's own, with deliveries."""
    alerts = Alert.objects.visible_to(user).select_related("run__experiment", "rule")
    alerts = alerts.prefetch_related("deliveries__channel").order_by("-pk")
    return alerts.filter(project=project, user=None) if project else alerts.filter(user=user.pk)
