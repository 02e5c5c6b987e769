"""Mail of alerts: to verified addresses only, at most `MOST_MAILS` in `WINDOW`, then a digest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import timezone

from webapp.accounts.models import User
from webapp.alerts.content import mail_text
from webapp.alerts.models import Alert, Delivery, DeliveryState, Way
from webapp.comments.mail import verified_address

MOST_MAILS = 5
WINDOW = timedelta(minutes=10)
MOST_IN_DIGEST = 200


class NoAddress(Exception):
    """Raised if the person cannot get mail; the message says why."""


def refusal(user: User) -> str:
    """Why the person cannot get mail; empty if they can."""
    if not settings.MAIL_IS_SENT:
        return "this site sends no mail; its operator configures it by GROVE_MAIL_URL"
    if verified_address(user) is None:
        return "you have no verified address; add one under Account, E-mail"
    return ""


def send(user: User, alerts: Sequence[Alert]) -> None:
    """Sends the alerts as one message.

    Raises:
        NoAddress: the person has no verified address, or the site sends no mail.
        OSError, smtplib.SMTPException: the mail server did not take it.
    """
    address = verified_address(user)
    reason = refusal(user)
    if reason or address is None:
        raise NoAddress(reason)
    subject, text = mail_text(alerts)
    EmailMessage(subject, text, to=[address]).send()


def wait_of(user: User) -> datetime | None:
    """When the person may get the next mail, if they had `MOST_MAILS` within the last `WINDOW`."""
    sent = Delivery.objects.filter(
        user=user, way=Way.MAIL, state=DeliveryState.SENT,
        sent_at__gt=timezone.now() - WINDOW,
    )  # fmt: skip
    # The alerts of one message have one time.
    times = sent.order_by("-sent_at").values_list("sent_at", flat=True).distinct()
    newest = list(times[:MOST_MAILS])
    return newest[-1] + WINDOW if len(newest) == MOST_MAILS else None
