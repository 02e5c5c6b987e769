"""Tests that at most one worker owns a run."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run
from tests.helpers.waiting import patience
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import LeaseLost, release, renew_lease, take_lease
from webapp.experiments.selectors import sweepable_runs
from webapp.experiments.services import request_stop


def lapse(run):
    Run.objects.filter(pk=run.pk).update(lease_expires=timezone.now() - timedelta(seconds=1))


def test_a_lease_is_taken_once(cast):
    run = a_run(cast)
    assert take_lease(run.pk, "one", 60) == 1
    assert take_lease(run.pk, "two", 60) is None


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED, RunState.STOPPED])
def test_an_ended_run_has_nothing_to_take(cast, state):
    assert take_lease(a_run(cast, state).pk, "one", 60) is None


def test_a_lapsed_lease_is_taken_over_with_a_higher_token(cast):
    run, fencing = a_held_run(cast)
    lapse(run)
    assert take_lease(run.pk, "two", 60) == fencing + 1
    run.refresh_from_db()
    assert run.restarts == 1 and run.lease_owner == "two"
    with pytest.raises(LeaseLost):
        renew_lease(run.pk, fencing, 60)


def test_an_expired_lease_stays_valid_until_another_claims_it(cast):
    run, fencing = a_held_run(cast)
    lapse(run)
    assert renew_lease(run.pk, fencing, 60).stop_requested is False
    assert take_lease(run.pk, "two", 60) is None


def test_renewing_returns_the_requested_stop(cast):
    run, fencing = a_held_run(cast)
    request_stop(run.pk)
    assert renew_lease(run.pk, fencing, 60).stop_requested is True


def test_a_released_run_can_be_taken_and_its_old_token_is_dead(cast):
    run, fencing = a_held_run(cast)
    release(run.pk, fencing)
    with pytest.raises(LeaseLost):
        renew_lease(run.pk, fencing, 60)
    assert take_lease(run.pk, "two", 60) == fencing + 1


def test_an_old_token_releases_nothing(cast):
    run, fencing = a_held_run(cast)
    release(run.pk, fencing - 1)
    assert renew_lease(run.pk, fencing, 60) is not None


def test_the_sweep_finds_what_no_worker_holds(cast):
    lost_message = a_run(cast)
    just_sent = a_run(cast, dispatched_at=timezone.now())
    sent_long_ago = a_run(cast, dispatched_at=timezone.now() - timedelta(seconds=6))
    held, _ = a_held_run(cast)
    orphan, _ = a_held_run(cast)
    lapse(orphan)
    a_run(cast, RunState.FINISHED)
    results = set(sweepable_runs())
    assert results == {lost_message.pk, sent_long_ago.pk, orphan.pk}
    assert not results & {just_sent.pk, held.pk}


@pytest.mark.django_db(transaction=True)
def test_of_workers_that_reach_for_a_run_at_once_one_gets_it():
    run = a_run(a_cast())
    gate = threading.Barrier(6)
    tokens = []

    def reach(name):
        gate.wait(60 * patience())
        tokens.append(take_lease(run.pk, name, 60))
        connection.close()

    threads = [threading.Thread(target=reach, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tokens, key=str) == [1] + [None] * 5
