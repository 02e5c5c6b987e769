"""Tests that old alerts and notices are removed, and that none of them can come back."""

from datetime import timedelta

from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_run
from webapp.alerts.models import Alert, Delivery, DeliveryState, Way
from webapp.comments.models import Notice, Reason
from webapp.retention import pruning

NOW = timezone.now()
OLD, NEW = NOW - timedelta(days=91), NOW - timedelta(days=89)


def an_alert(key, created=OLD, run=None, state=None):
    alert = Alert.objects.create(
        key=key, kind="run-failed", run=run, title=key, since=created, path="/"
    )
    Alert.objects.filter(pk=alert.pk).update(created=created)
    if state:
        Delivery.objects.create(
            alert=alert, way=Way.MAIL, state=state, due_at=created, deadline=created
        )


def a_notice(user, key, at=OLD, read_at=None, run=None):
    Notice.objects.create(
        user=user, reason=Reason.ALERT, key=key, title=key, at=at, read_at=read_at, run=run
    )


def test_old_alerts_go_with_their_deliveries_unless_one_is_pending_or_the_run_goes_on(cast):
    ended = a_run(cast, RunState.FAILED, finished_at=OLD)
    later = a_run(cast, RunState.FINISHED, finished_at=NEW)
    active = a_run(cast, RunState.RUNNING)
    an_alert("old", run=ended, state=DeliveryState.SENT)
    an_alert("old, of no run", state=DeliveryState.FAILED)
    an_alert("pending", run=ended, state=DeliveryState.PENDING)
    an_alert("active", run=active, state=DeliveryState.SENT)
    an_alert("ended lately", run=later)
    an_alert("new", created=NEW, run=ended)
    assert pruning.prune(NOW) == 2
    kept = set(Alert.objects.values_list("title", flat=True))
    assert kept == {"pending", "active", "ended lately", "new"}
    assert Delivery.objects.count() == 2
    assert pruning.prune(NOW) == 0


def test_notices_go_once_they_were_read_or_after_a_year(cast):
    year = NOW - timedelta(days=366)
    a_notice(cast.bob, "read", read_at=OLD)
    a_notice(cast.bob, "read lately", at=year, read_at=NEW)
    a_notice(cast.bob, "unread", at=OLD)
    a_notice(cast.bob, "unread for a year", at=year)
    a_notice(cast.bob, "active", read_at=OLD, run=a_run(cast, RunState.RUNNING))
    assert pruning.prune(NOW) == 2
    kept = set(Notice.objects.values_list("title", flat=True))
    assert kept == {"read lately", "unread", "active"}


def test_many_rows_are_removed_in_batches(cast, monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 2)
    for number in range(5):
        an_alert(str(number))
    assert pruning.prune(NOW) == 5 and not Alert.objects.exists()
