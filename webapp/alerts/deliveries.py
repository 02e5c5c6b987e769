"""Deliveries on their way: taking, sending, retrying, giving up. Workers call `send_next`.

Invariants: taking a delivery keeps it from other workers for as long as sending may last, and then
it is due again, so a killed worker delays it and never loses it; a webhook may arrive twice, with
the same `webhook-id`. Waits: of a receiver `deadlines.WEBHOOK`, of a delivery until its deadline.
"""

from __future__ import annotations

import logging
import random
import smtplib
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from engine.config.deadlines import WEBHOOK
from webapp.alerts import content, mails, outbound
from webapp.alerts.channels import disable
from webapp.alerts.models import TEST, Alert, Channel, Delivery, DeliveryState, Preferences, Way
from webapp.alerts.quiet import QuietHours
from webapp.alerts.signatures import signed_headers

logger = logging.getLogger(__name__)

FIRST_RETRY = timedelta(seconds=10)
LONGEST_RETRY = timedelta(hours=1)
MOST_FAILURES = 10
FAILING_FOR = timedelta(hours=6)
"""A channel with `MOST_FAILURES` failed attempts in a row, over this long, is disabled."""
_MAIL_SECONDS = 60.0
"""Most seconds that one message may take: of each of a few exchanges `settings.EMAIL_TIMEOUT`."""
_GONE = 410


def send_next() -> bool:
    """Sends the delivery that has been due longest, or postpones it; returns False if none is."""
    delivery = _take()
    if delivery is None:
        return False
    if not _may_have(delivery):
        _give_up(delivery, "its recipient may no longer see what it is about")
    elif delivery.alert.kind != TEST and (end := _quiet_until(delivery)):
        _postpone(delivery, end)
    elif delivery.deadline < timezone.now():
        _give_up(delivery, delivery.error or "it was not sent in time")
    elif delivery.way == Way.MAIL:
        _mail(delivery)
    else:
        _post(delivery)
    return True


@transaction.atomic
def _take() -> Delivery | None:
    due = Delivery.objects.select_for_update(skip_locked=True, of=("self",)).filter(
        state=DeliveryState.PENDING, due_at__lte=timezone.now()
    )
    related = "alert__project__workspace", "alert__run__experiment", "alert__rule", "channel"
    delivery = due.select_related(*related, "user").order_by("due_at", "created").first()
    if delivery is None:
        return None
    delivery.attempts += 1
    delivery.due_at = timezone.now() + _longest_attempt()
    delivery.save(update_fields=["attempts", "due_at"])
    return delivery


def _longest_attempt() -> timedelta:
    return timedelta(seconds=WEBHOOK.seconds + _MAIL_SECONDS)


def retry_after(attempts: int) -> timedelta:
    """The pause after so many attempts: 10 s, three times longer each time, at most an hour, and up
    to a fifth more, so that receivers do not get all retries at once."""
    pause = min(LONGEST_RETRY, FIRST_RETRY * 3 ** min(attempts - 1, 10))
    return pause * (1 + 0.2 * random.random())  # nosec B311


def _may_have(delivery: Delivery) -> bool:
    """Whether the person still sees what their notice is about: it may have waited for hours."""
    user = delivery.user
    if user is None:  # of a project's rule, or a test of a channel
        return True
    seen = Alert.objects.visible_to(user).filter(pk=delivery.alert_id)
    return user.is_active and seen.exists()


def _quiet_until(delivery: Delivery) -> datetime | None:
    preferences = Preferences.objects.filter(user=delivery.user_id).first()
    if preferences is None or preferences.quiet_from is None or preferences.quiet_until is None:
        return None
    hours = QuietHours(preferences.quiet_from, preferences.quiet_until, preferences.time_zone)
    return hours.end_after(timezone.now())


def _postpone(delivery: Delivery, until: datetime) -> None:
    """Waits without counting it as an attempt; the deadline moves with it."""
    wait = until - timezone.now()
    Delivery.objects.filter(pk=delivery.pk).update(
        due_at=until, attempts=F("attempts") - 1, deadline=F("deadline") + wait
    )


def _post(delivery: Delivery) -> None:
    channel = delivery.channel
    if channel.disabled_at:
        _give_up(delivery, "the channel is disabled")
        return
    is_slack = delivery.way == Way.SLACK
    body = content.slack_body(delivery) if is_slack else content.webhook_body(delivery)
    now = int(timezone.now().timestamp())
    headers = {} if is_slack else signed_headers(channel.nonce, str(delivery.pk), now, body)
    guard = outbound.Guard(settings.ALERT_NETWORKS)
    try:
        response = outbound.post(guard, channel.url, body, headers)
    except outbound.Refused as refusal:
        _record_failure(delivery, str(refusal), final=True)
    except outbound.NotReached as failure:
        _record_failure(delivery, str(failure))
    else:
        _record(delivery, response)


def _record(delivery: Delivery, response: outbound.Response) -> None:
    delivery.status, delivery.answer = response.status, response.text[:200]
    if 200 <= response.status < 300:
        _succeed(delivery)
        return
    reasons = {
        300: "it redirects, which is not followed: give the final address",
        400: "it refused the notice",
        500: "it failed",
    }
    reason = reasons.get(response.status // 100 * 100, "it gave no usable response")
    _record_failure(delivery, f"HTTP {response.status}: {reason}")
    if response.status == _GONE and delivery.channel:
        disable(delivery.channel, "its receiver says that the address is gone (HTTP 410)")


@transaction.atomic
def _succeed(delivery: Delivery) -> None:
    now = timezone.now()
    Delivery.objects.filter(pk=delivery.pk).update(
        state=DeliveryState.SENT, sent_at=now, error="", status=delivery.status,
        answer=delivery.answer,
    )  # fmt: skip
    if delivery.channel_id:
        healthy = Channel.objects.filter(pk=delivery.channel_id)
        healthy.update(failures=0, failing_since=None)


@transaction.atomic
def _record_failure(delivery: Delivery, error: str, *, final: bool = False) -> None:
    """Notes a failed attempt. The channel's other deliveries wait as long, so that a silent
    receiver costs a worker one attempt at a time."""
    channel = Channel.objects.select_for_update().filter(pk=delivery.channel_id).first()
    if channel is None:  # deleted meanwhile, with its deliveries
        return
    delivery.due_at = timezone.now() + retry_after(delivery.attempts)
    Delivery.objects.filter(pk=delivery.pk).update(
        error=error[:300], status=delivery.status, answer=delivery.answer, due_at=delivery.due_at
    )
    if final or delivery.due_at > delivery.deadline:
        _give_up(delivery, error)
    waiting = Delivery.objects.filter(channel=channel, state=DeliveryState.PENDING)
    waiting.update(due_at=Greatest(F("due_at"), delivery.due_at))
    channel.failures += 1
    channel.failing_since = channel.failing_since or timezone.now()
    channel.save(update_fields=["failures", "failing_since"])
    failing_for = timezone.now() - channel.failing_since
    if channel.failures >= MOST_FAILURES and failing_for >= FAILING_FOR:
        disable(channel, f"{channel.failures} attempts in a row failed, the last: {error}")


def _give_up(delivery: Delivery, error: str) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(state=DeliveryState.FAILED, error=error[:300])
    logger.warning("delivery %s of alert %s failed: %s", delivery.pk, delivery.alert_id, error)


def _mail(delivery: Delivery) -> None:
    """Sends the person's due mail as one message: a digest if it is several alerts."""
    is_test = delivery.alert.kind == TEST
    if not is_test and (wait := mails.wait_of(delivery.user)):
        _postpone_mail(delivery, wait)
        return
    together = [delivery] if is_test else [delivery, *_take_with(delivery)]
    try:
        mails.send(delivery.user, [one.alert for one in together])
    except mails.NoAddress as refusal:
        for one in together:
            _give_up(one, str(refusal))
    except (OSError, smtplib.SMTPException) as failure:
        error = f"the mail server did not take it: {failure}"[:300]
        ids = [one.pk for one in together]
        due_at = timezone.now() + retry_after(delivery.attempts)
        Delivery.objects.filter(pk__in=ids).update(error=error, due_at=due_at)
    else:
        ids = [one.pk for one in together]
        sent = Delivery.objects.filter(pk__in=ids)
        sent.update(state=DeliveryState.SENT, sent_at=timezone.now(), error="")


@transaction.atomic
def _take_with(delivery: Delivery) -> list[Delivery]:
    """Takes the person's other due mail, which no other worker then sends too."""
    due = Delivery.objects.select_for_update(skip_locked=True, of=("self",)).filter(
        user=delivery.user_id, way=Way.MAIL, state=DeliveryState.PENDING,
        due_at__lte=timezone.now(),
    )  # fmt: skip
    others = due.exclude(alert__kind=TEST).select_related("alert").order_by("created")
    taken = list(others[: mails.MOST_IN_DIGEST - 1])
    ids = [one.pk for one in taken]
    Delivery.objects.filter(pk__in=ids).update(due_at=timezone.now() + _longest_attempt())
    return taken


def _postpone_mail(delivery: Delivery, until: datetime) -> None:
    """All of the person's mail waits: it then becomes one digest."""
    _postpone(delivery, until)
    waiting = Delivery.objects.filter(
        user=delivery.user_id, way=Way.MAIL, state=DeliveryState.PENDING
    )
    waiting.exclude(alert__kind=TEST).update(due_at=Greatest(F("due_at"), until))
