"""Channels: creation, rotation of secrets, tests, disabling and deletion.

Invariant: a channel's secret is returned by creation and rotation, and by nothing else.
"""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.alerts.errors import AlertRefused
from webapp.alerts.models import TEST, Alert, Channel, Way
from webapp.alerts.notices import deliver, members_of, put_into_inbox
from webapp.alerts.outbound import Guard, Refused
from webapp.alerts.owners import Owner, fields_of, lock
from webapp.alerts.signatures import secret_of
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may

MOST_CHANNELS = 20
"""Channels of one person, or of one project."""


def create_channel(owner: Owner, kind: Way, name: str, url: str, by: User) -> Channel:
    """Creates a channel of the person or project.

    Raises:
        AlertRefused: the address may not be posted to, or there are `MOST_CHANNELS`.
    """
    try:
        Guard(settings.ALERT_NETWORKS).check_url(url)
    except Refused as refusal:
        raise AlertRefused("url", url[:200], str(refusal)) from None
    with transaction.atomic():
        lock(owner)
        if Channel.objects.filter(**fields_of(owner)).count() >= MOST_CHANNELS:
            raise AlertRefused("name", name, f"{MOST_CHANNELS} channels exist: delete one")
        fields = {"kind": kind, "name": name, "url": url, "created_by": by}
        return Channel.objects.create(**fields_of(owner), **fields)


def secret_to_show(channel: Channel) -> str | None:
    """The webhook's secret, to be shown once; None for a channel that is not signed."""
    return secret_of(channel.nonce) if channel.kind == Way.WEBHOOK else None


def rotate(channel: Channel) -> str | None:
    """Replaces the secret and returns the new one. Deliveries that are pending are signed with it:
    a receiver that does not have it yet refuses them, and they are retried.

    Raises:
        AlertRefused: it is no webhook.
    """
    if channel.kind != Way.WEBHOOK:
        raise AlertRefused("do", "rotate", "only a webhook has a secret")
    channel.nonce = secrets.token_hex(16)
    channel.save(update_fields=["nonce"])
    return secret_to_show(channel)


def enable(channel: Channel, by: User) -> None:
    """Enables a disabled channel. Who does it answers for a project's channel from now on."""
    channel.failures, channel.failing_since = 0, None
    channel.disabled_at, channel.disabled_reason, channel.created_by = None, "", by
    channel.save()


@transaction.atomic
def disable(channel: Channel, reason: str) -> None:
    """Disables the channel and notifies those who manage it; idempotent."""
    now = timezone.now()
    changed = Channel.objects.filter(pk=channel.pk, disabled_at=None).update(
        disabled_at=now, disabled_reason=reason[:300]
    )
    if not changed:
        return
    alert = Alert(
        kind=TEST,
        project=channel.project,
        title=f"The channel {channel.name} is disabled",
        cause=f"{reason[:1].upper()}{reason[1:]}. Enable it again where it is listed.",
        since=now,
        path=_page_of(channel),
    )
    put_into_inbox(_managers(channel), alert, f"disabled:{channel.pk}:{now.isoformat()}")


def send_test(user: User, channel: Channel) -> Alert:
    """Sends a test notice to the channel; it waits for no quiet hours."""
    title = f"Test of the channel {channel.name}"
    alert = _test_alert(title, user if channel.user_id else None, channel.project, user)
    deliver(alert, Way(channel.kind), user=None, channel=channel)
    return alert


def send_own_test(user: User, with_mail: bool) -> Alert:
    """Sends a test notice to the person's inbox, and by mail if `with_mail`."""
    alert = _test_alert("Test of your notifications", user, None, user)
    put_into_inbox([user], alert, alert.key)
    if with_mail:
        deliver(alert, Way.MAIL, user=user)
    return alert


def delete_channel(channel: Channel) -> None:
    """Deletes the channel with its deliveries; rules go on without it."""
    channel.delete()


def _test_alert(title: str, user: User | None, project: Project | None, by: User) -> Alert:
    return Alert.objects.create(
        key=f"{TEST}:{uuid.uuid4()}", kind=TEST, user=user, project=project, title=title,
        cause=f"{by} requested it.", since=timezone.now(), path="/notifications/",
    )  # fmt: skip


def _managers(channel: Channel) -> list[User]:
    project = channel.project
    if project is None:
        return [channel.user]
    return [one for one in members_of(project) if may(one, Action.MANAGE_ALERTS, project)]


def _page_of(channel: Channel) -> str:
    return f"/projects/{channel.project_id}/alerts/" if channel.project_id else "/notifications/"
