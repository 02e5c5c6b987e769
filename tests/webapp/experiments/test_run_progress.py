"""Tests that the list shows a run's progress towards the bound that ends it: steps or minutes."""

import pytest

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_run


@pytest.fixture
def listed(client, cast):
    """The page's progress cell for a run with these values: (value of the bar, text)."""

    def shown(state, minutes, **row):
        run = a_run(cast, state)
        run.config["training"] |= {"steps": row["steps"], "minutes": minutes}
        for name, value in row.items():
            setattr(run, name, value)
        run.save()
        client.force_login(cast.bob)
        (only,) = client.get("/").context["table"].rows
        return None if only.progress is None else (only.progress.share, only.progress.text)

    return shown


@pytest.mark.parametrize(
    ("state", "seconds", "expected"),
    [
        (RunState.FINISHED, 366.0, (1.0, "6.0 of 6 min, 204 steps")),
        (RunState.RUNNING, 180.0, (0.5, "3.0 of 6 min, 204 steps")),
        (RunState.RUNNING, 18.0, (0.204, "204 of 1000 steps")),
        (RunState.RUNNING, 366.0, (1.0, "6.0 of 6 min, 204 steps")),
    ],
)
def test_a_run_limited_by_minutes_is_as_far_as_its_minutes(listed, state, seconds, expected):
    result = {"training_seconds": seconds}
    assert listed(state, 6.0, steps=1000, step=204, result=result) == expected


def test_a_run_without_minutes_is_as_far_as_its_steps(listed):
    assert listed(RunState.RUNNING, None, steps=1000, step=204) == (0.204, "204 of 1000 steps")


def test_a_run_that_planned_nothing_yet_shows_no_progress(listed):
    assert listed(RunState.QUEUED, 6.0, steps=0, step=0) is None
