"""Removal of old alerts, their deliveries, and notices of the inbox.

Invariant: nothing is removed that could come back: an alert is the record by which an occasion is
noticed once, so that those of a run stay until it has ended for as long; nor what is still to be
delivered.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.alerts.models import Alert, Delivery, DeliveryState
from webapp.comments.models import Notice
from webapp.experiments.scheduling.states import ENDED

logger = logging.getLogger(__name__)

KEPT = timedelta(days=90)
"""Of alerts with their deliveries, since they were raised, and of notices, since they were read."""
UNREAD = timedelta(days=365)
"""Of notices that nobody read, since what they are about."""
BATCH = 1000
"""Rows of one statement, so that none holds locks for long."""


def prune(now: datetime | None = None) -> int:
    """Removes what is older; returns how many alerts and notices."""
    now = now or timezone.now()
    numbers = [_remove(rows) for rows in (old_alerts(now), old_notices(now))]
    if any(numbers):
        logger.info("removed %d old alerts and %d old notices", *numbers)
    return sum(numbers)


def old_alerts(now: datetime) -> QuerySet[Alert]:
    """Alerts that are removed at this moment."""
    pending = Delivery.objects.filter(alert=OuterRef("pk"), state=DeliveryState.PENDING)
    return Alert.objects.filter(_of_no_current_run(now), ~Exists(pending), created__lt=now - KEPT)


def old_notices(now: datetime) -> QuerySet[Notice]:
    """Notices of people's inboxes that are removed at this moment."""
    about = Notice.objects.annotate(since=Coalesce("at", "comment__created"))
    return about.filter(
        _of_no_current_run(now), Q(read_at__lt=now - KEPT) | Q(read_at=None, since__lt=now - UNREAD)
    )


def _of_no_current_run(now: datetime) -> Q:
    return Q(run=None) | Q(run__state__in=ENDED, run__finished_at__lt=now - KEPT)


def _remove(rows: QuerySet) -> int:
    total = 0
    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        rows.model.objects.filter(pk__in=keys).delete()
        total += len(keys)
    return total
