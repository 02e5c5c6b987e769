"""Tests of the pure part: occasions, quiet hours, signatures, retries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

import pytest

from engine.events.vocabulary import RunState
from webapp.alerts.deliveries import FIRST_RETRY, LONGEST_RETRY, retry_after
from webapp.alerts.evaluation import (
    Point,
    Progress,
    RunFacts,
    ended,
    fold_level,
    fold_points,
    stalled,
    warned,
)
from webapp.alerts.quiet import QuietHours


@dataclass
class Below:
    direction: str = "below"
    threshold: float | None = 0.5
    points: int = 2


def series(*values: float) -> list[Point]:
    return [Point(step, 100.0 + step, value) for step, value in enumerate(values, 1)]


def keys(*values: float, **rule) -> list[str]:
    return [
        one.key
        for one in fold_points(Below(**rule), "Shade #1", "reward", Progress(), series(*values))[1]
    ]


def test_a_threshold_fires_at_the_last_point_in_a_row_and_again_after_recovery():
    assert keys(0.9, 0.4) == []
    assert keys(0.4, 0.4, 0.4, 0.4) == ["reward:1"]
    assert keys(0.4, 0.9, 0.4) == []
    assert keys(0.4, 0.4, 0.5, 0.4, 0.4) == ["reward:1", "reward:2"], "0.5 is not below 0.5"
    assert keys(0.6, 0.4, points=1, direction="above") == ["reward:1"]
    assert keys(0.0, 0.0, threshold=0.0) == []


def test_one_batch_or_many_give_the_same_occasions():
    points = series(0.4, 0.4, 0.9, 0.1, 0.1, 0.1)
    at_once = fold_points(Below(), "Shade #1", "reward", Progress(), points)
    progress, occasions = Progress(), []
    for point in points:
        progress, more = fold_points(Below(), "Shade #1", "reward", progress, [point])
        occasions += more
    assert (progress, occasions) == at_once
    last = occasions[-1]
    assert last.title == "Shade #1: reward is below 0.5"
    assert last.cause == "reward is 0.1 at step 5, below 0.5 for 2 points in a row."
    assert last.since == 104.0, "of the first of the points in a row"


def test_a_number_that_a_program_logged_has_its_name_there():
    name = "logged.train~1loss~0x"
    _, (occasion,) = fold_points(Below(), "Shade #1", name, Progress(), series(0.4, 0.4))
    assert occasion.title == "Shade #1: train/loss~x is below 0.5"
    assert occasion.key == f"{name}:1", "which outlives the wording"


def test_an_end_is_an_occasion_of_its_own_kind():
    def facts(state: RunState) -> RunFacts:
        return RunFacts("Shade #1", state, 7, "out of memory", 12.5)

    failed = ended(facts(RunState.FAILED), failures_only=True)
    assert failed.title == "Shade #1 failed at step 7" and failed.cause == "out of memory"
    assert failed.since == 12.5
    assert ended(facts(RunState.FINISHED), failures_only=True) is None
    assert ended(facts(RunState.FINISHED), failures_only=False).title.endswith("finished at step 7")
    assert ended(facts(RunState.STOPPED), failures_only=False).cause == ""
    for state in (RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.STOPPING):
        assert ended(facts(state), failures_only=False) is None


def test_a_warning_that_opens_is_an_occasion_and_one_that_closes_is_none():
    payload = {"rule": "entropy_collapse", "agent": "oak", "state": "opened", "step": 4,
               "title": "Entropy collapse", "seen": "It is 0.01.", "since_time": 90.0}  # fmt: skip
    one = warned([], "Shade #1", payload, 100.0)
    assert one.title == "Shade #1: Entropy collapse (oak)" and one.cause == "It is 0.01."
    assert one.since == 90.0 and one.key == "health:entropy_collapse:oak:4"
    assert warned(["entropy_collapse"], "Shade #1", payload, 100.0) == one
    assert warned(["slow_step"], "Shade #1", payload, 100.0) is None
    assert warned([], "Shade #1", payload | {"state": "closed"}, 100.0) is None
    assert warned([], "Shade #1", {"state": "opened"}, 100.0).since == 100.0, "of a foreign engine"


def test_a_level_fires_when_it_rises_and_again_after_it_fell():
    progress, fired = Progress(), []
    for beyond in (False, True, True, False, True):
        progress, one = fold_level("disk", progress, beyond=beyond, title="t", cause="c", now=1.0)
        fired += [one.key] if one else []
    assert fired == ["disk:1", "disk:2"]


def test_a_stalled_run_is_one_occasion_per_pause():
    assert stalled(10, "Shade #1", 5, 0.0, "", 599.0) is None
    first = stalled(10, "Shade #1", 5, 0.0, "the sandbox", 600.0)
    assert first == stalled(10, "Shade #1", 5, 0.0, "the sandbox", 900.0)
    assert first.cause.endswith("It waits for the sandbox.") and first.since == 0.0
    assert stalled(10, "Shade #1", 6, 300.0, "", 900.0).key != first.key


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-03-01 20:59", None),
        ("2026-03-01 21:00", "2026-03-02 06:00"),  # 22:00 in Vienna
        ("2026-03-02 05:59", "2026-03-02 06:00"),
        ("2026-03-02 06:00", None),
        ("2026-03-29 00:30", "2026-03-29 05:00"),  # clocks go forward at 01:00 UTC
        ("2026-10-25 00:30", "2026-10-25 06:00"),  # and back
    ],
)
def test_quiet_hours_over_midnight_follow_the_clocks_of_their_zone(now, end):
    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    hours = QuietHours(time(22), time(7), "Europe/Vienna")
    assert hours.end_after(moment(now)) == (moment(end) if end else None)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        # 02:30 does not exist on the night of 29 March: it is 03:30, an hour later by the clock.
        ("2026-03-29 00:59", "2026-03-29 01:30"),
        ("2026-03-29 01:00", None),  # 03:00
        # 02:30 comes twice on the night of 25 October: the first ends them.
        ("2026-10-25 00:29", "2026-10-25 00:30"),
        ("2026-10-25 00:30", None),
        ("2026-10-25 01:15", None),  # 02:15 again
        ("2026-10-25 21:00", "2026-10-26 01:30"),
    ],
)
def test_quiet_hours_that_end_in_the_hour_of_a_change_end_once(now, end):
    hours = QuietHours(time(22), time(2, 30), "Europe/Vienna")
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    expected = end and datetime.fromisoformat(end).replace(tzinfo=UTC)
    assert hours.end_after(moment) == expected


@pytest.mark.parametrize("zone", ["UTC", "Atlantis/Gone"])
def test_quiet_hours_within_a_day_also_in_a_zone_that_is_known_no_more(zone):
    hours = QuietHours(time(12), time(13), zone)
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert hours.end_after(noon) == noon + timedelta(hours=1)
    assert hours.end_after(noon - timedelta(seconds=1)) is None
    assert hours.end_after(noon + timedelta(hours=1)) is None


def test_retries_wait_longer_each_time_up_to_an_hour():
    waits = [retry_after(attempts) for attempts in range(1, 40)]
    assert FIRST_RETRY <= waits[0] <= 1.2 * FIRST_RETRY
    assert all(one > 3 * FIRST_RETRY * 0.8 for one in waits[1:])
    assert all(LONGEST_RETRY <= one <= 1.2 * LONGEST_RETRY for one in waits[7:])
