"""Tests that events reach the database exactly once, in order, from one writer."""

import threading

import pytest
from django.db import connection

from engine.events.vocabulary import Event as LogEvent
from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, an_event, some_events
from tests.helpers.waiting import patience
from webapp.experiments.scheduling.leases import LeaseLost, release, take_lease
from webapp.telemetry.ingest.ingest import GapError, ingest
from webapp.telemetry.models import Event


def stored(run):
    return list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


def test_a_batch_is_stored_and_the_head_moves(cast):
    run, fencing = a_held_run(cast)
    assert ingest(run.pk, fencing, some_events(1, 5)) == 5
    assert stored(run) == [1, 2, 3, 4, 5]


def test_events_sent_again_are_stored_once(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 5))
    assert ingest(run.pk, fencing, some_events(1, 5)) == 5
    assert ingest(run.pk, fencing, some_events(3, 8)) == 8
    assert stored(run) == list(range(1, 9))


def test_a_gap_is_refused_and_named(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 2))
    with pytest.raises(GapError, match="event 4 cannot follow event 2; send again from seq 3"):
        ingest(run.pk, fencing, some_events(4, 5))
    with pytest.raises(GapError, match="event 5 cannot follow event 3"):
        ingest(run.pk, fencing, [an_event(3), an_event(5)])
    assert stored(run) == [1, 2]


def test_a_writer_that_lost_its_lease_stores_nothing(cast):
    run, fencing = a_held_run(cast)
    release(run.pk, fencing)
    with pytest.raises(LeaseLost):
        ingest(run.pk, fencing, some_events(1, 2))
    newer = take_lease(run.pk, "two", 60)
    with pytest.raises(LeaseLost):
        ingest(run.pk, fencing, some_events(1, 2))
    assert ingest(run.pk, newer, some_events(1, 1)) == 1


def test_every_field_survives(cast):
    run, fencing = a_held_run(cast)
    text = 'quote " backslash \\ newline \n snowman ☃ escaped \\u0000'
    event = LogEvent(1, 1700000000.125, "node.open", 7, 3, {"text": text, "draws": {"a": [0.5]}})
    ingest(run.pk, fencing, [event])
    found = Event.objects.get(run=run)
    assert (found.seq, found.kind, found.tree, found.node) == (1, "node.open", 7, 3)
    assert found.time.timestamp() == 1700000000.125
    assert found.payload == {"text": text, "draws": {"a": [0.5]}}


def test_a_nul_character_is_replaced_not_fatal(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1, message="a\0b \\\0c")])
    assert Event.objects.get(run=run).payload["message"] == "a\ufffdb \\\ufffdc"


def test_the_runs_row_follows_its_events(cast):
    run, fencing = a_held_run(cast)
    ingest(
        run.pk,
        fencing,
        [
            an_event(1, "run.state", state="running", reason=""),
            an_event(2, "run.planned", steps=9, agents=["oak"], minutes=None),
            an_event(3, "run.waiting", name="sandbox", deadline_seconds=12.0),
        ],
    )
    run.refresh_from_db()
    assert run.run_state is RunState.RUNNING and run.steps == 9
    assert (run.waiting_deadline - run.waiting_since).total_seconds() == 12
    ingest(run.pk, fencing, [an_event(4, "run.waiting", name="", deadline_seconds=0.0)])
    run.refresh_from_db()
    assert run.waiting_name == "" and run.waiting_since is None


@pytest.mark.django_db(transaction=True)
def test_two_writers_at_once_leave_each_event_once():
    run, fencing = a_held_run(a_cast())
    problems = []

    def ship():
        try:
            for first in range(1, 1000, 50):
                ingest(run.pk, fencing, some_events(first, first + 49))
        except GapError as fault:
            problems.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=ship) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30 * patience())
    assert not problems and stored(run) == list(range(1, 1001))
