"""Tests of the run's row as a pure fold of its events."""

import pytest

from engine.events.vocabulary import KINDS
from tests.helpers.builders import an_event
from webapp.telemetry.ingest.projections import KEPT_WARNINGS, project
from webapp.telemetry.selectors import _BY_NAME, _BY_NODE, _BY_RUN, _OF_STEPS, _TAIL, _WHOLE

FRESH = {
    "state": "starting",
    "step": 0,
    "steps": 0,
    "waiting_name": "",
    "waiting_since": None,
    "waiting_deadline": None,
    "error": "",
    "result": {},
}


def an_evaluation(seq, step, pass1):
    return an_event(
        seq,
        "eval.result",
        step=step,
        split="test",
        agents={"oak": pass1},
        standard_errors={"oak": 0.02},
        problems=300,
        tree=None,
    )


def a_step(seq, step):
    return an_event(seq, "step.end", step=step, solved=0.5, reward=0.25, training_seconds=9.0)


LOG = [
    an_event(1, "run.state", state="running"),
    an_event(2, "run.planned", steps=40),
    an_evaluation(3, 0, 0.2),
    a_step(4, 1),
    an_event(5, "error", message="first"),
    an_event(6, "error", message="second"),
    an_evaluation(7, 40, 0.7),
    an_evaluation(8, 40, 0.8),
]


def test_a_log_gives_the_summary():
    row = project(FRESH, LOG)
    assert (row["state"], row["step"], row["steps"]) == ("running", 1, 40)
    assert row["error"] == "first"
    assert row["result"]["solved"] == 0.5 and row["result"]["training_seconds"] == 9.0
    assert row["result"]["test"]["before"]["agents"] == {"oak": 0.2}
    assert row["result"]["test"]["latest"]["agents"] == {"oak": 0.8}


@pytest.mark.parametrize("cut", range(len(LOG) + 1))
def test_batches_make_no_difference(cut):
    assert project(project(FRESH, LOG[:cut]), LOG[cut:]) == project(FRESH, LOG)


def test_the_given_row_is_not_mutated():
    row = {**FRESH, "result": {"test": {"before": {}}}}
    project(row, LOG)
    assert row["result"] == {"test": {"before": {}}}


def test_running_does_not_undo_stopping():
    assert project({**FRESH, "state": "stopping"}, LOG[:1])["state"] == "stopping"


def test_a_resume_takes_the_steps_back():
    row = project(FRESH, [a_step(1, 9), an_event(2, "run.resumed", step=5)])
    assert row["step"] == 5


def test_every_event_kind_is_folded_into_a_state():
    assert sorted(_WHOLE + _TAIL + _OF_STEPS + _BY_NODE + _BY_RUN + _BY_NAME) == sorted(KINDS)


def a_change(seq, state, rule, step):
    fields = {"title": "T", "seen": "S", "since": step, "since_time": 1.0, "agent": "oak"}
    return an_event(seq, "health", rule=rule, state=state, step=step, **fields)


UNWELL = [
    a_change(1, "opened", "mismatch", 3),
    a_change(2, "opened", "slow_step", 4),
    a_change(3, "closed", "mismatch", 9),
    a_change(4, "opened", "mismatch", 12),
]


def warnings(row):
    return [(one["rule"], one["step"], one["closed"]) for one in row["result"]["health"]]


def test_the_row_has_the_health_warnings_with_their_ends():
    row = project(FRESH, UNWELL)
    assert warnings(row) == [("mismatch", 3, 9), ("slow_step", 4, None), ("mismatch", 12, None)]
    first = {"title": "T", "seen": "S", "agent": "oak", "since": 3}
    assert row["result"]["health"][0].items() >= first.items()
    assert project(project(FRESH, UNWELL[:2]), UNWELL[2:]) == row


def test_a_resume_takes_back_what_opened_and_what_closed_after_it():
    resumed = project(project(FRESH, UNWELL), [an_event(5, "run.resumed", step=4)])
    assert warnings(resumed) == [("mismatch", 3, None), ("slow_step", 4, None)]


def test_the_row_keeps_the_newest_warnings():
    many = [
        a_change(2 * step + at, state, "mismatch", step)
        for step in range(1, KEPT_WARNINGS + 9)
        for at, state in enumerate(("opened", "closed"))
    ]
    kept = warnings(project(FRESH, many))
    assert len(kept) == KEPT_WARNINGS and kept[-1] == (
        "mismatch",
        KEPT_WARNINGS + 8,
        KEPT_WARNINGS + 8,
    )
