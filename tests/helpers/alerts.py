"""Builders of alert rules, and the sending of all that is due."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from webapp.accounts.models import User
from webapp.alerts.channels import create_channel
from webapp.alerts.deliveries import send_next
from webapp.alerts.models import AlertRule, Channel, Delivery, RuleKind, Way
from webapp.alerts.services import RuleSpec, create_rule
from webapp.comments.models import Notice
from webapp.projects.models import Project


def a_rule(owner: User | Project, project: Project, kind: RuleKind, **fields: Any) -> AlertRule:
    """A rule of a person about the project, or of the project by its creator."""
    by = owner if isinstance(owner, User) else project.created_by
    return create_rule(RuleSpec(kind, project=project, **fields), owner, by)


def a_channel(owner: User | Project, url: str, kind: Way = Way.WEBHOOK) -> Channel:
    by = owner if isinstance(owner, User) else owner.created_by
    return create_channel(owner, kind, "hook", url, by)


def send_all() -> int:
    """Sends what is due now, as a worker does; returns how many it looked at."""
    looked = 0
    while send_next():
        looked += 1
        assert looked < 1000
    return looked


def make_due() -> None:
    """Makes every pending delivery due, as if its wait were over."""
    Delivery.objects.filter(state="pending").update(due_at=timezone.now())


def inbox_titles(user: User) -> list[str]:
    """Titles of the alerts in the person's inbox, oldest first."""
    notices = Notice.objects.visible_to(user).filter(comment=None).order_by("pk")
    return list(notices.values_list("title", flat=True))
