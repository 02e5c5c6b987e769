"""Tests of the health warnings on a run's page, in the list of runs, and in the replay."""

from __future__ import annotations

import os

import pytest

from tests.e2e.wellness import accessibility_errors
from tests.helpers.unwell_log import SEEN, closed, opened, with_health

pytestmark = [pytest.mark.browser, pytest.mark.large, pytest.mark.django_db(transaction=True)]

FIVE = {
    1: [
        opened("mismatch", 1),
        opened("entropy_collapse", 1, "fern"),
        opened("slow_step", 1, agent=""),
    ],
    2: [opened("equal_groups", 2, agent=""), closed("slow_step", 2, agent="")],
    3: [opened("held_out_falls", 3), opened("idle_agent", 3, "fern")],
}


@pytest.fixture
def page(window, run):
    """The page of the run, signed in, before its first event."""
    return window(f"/runs/{run.run.pk}/")


def fed(page, run, log, changes):
    """Ships the whole log with these changes and waits until the page shows it."""
    events = with_health(log, changes)
    head = run.feed(events)
    page.locator(f'[data-part="stream"][data-seq="{head}"][data-shown="{head}"]').wait_for()
    return events


def shot(page, name):
    """Saves a picture if a folder for pictures is given."""
    if folder := os.environ.get("GROVE_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_a_healthy_run_shows_no_banner(page, run, log):
    fed(page, run, log, {})
    assert page.locator('[data-part="health"]').is_hidden()
    shot(page, "none")


def test_a_warning_says_what_is_seen_since_when_and_what_people_change(page, run, log):
    fed(page, run, log, {2: [opened("mismatch", 2)]})
    banner = page.get_by_role("status", name="Health")
    banner.get_by_text("1 health warning").wait_for()
    text = banner.inner_text()
    assert "Generator and learner apart" in text and "oak" in text and SEEN["mismatch"] in text
    assert "Since step 1, " in text
    advice = banner.get_by_text("loss.importance_correction")
    assert advice.is_hidden()
    banner.get_by_text("What people change").click()
    advice.wait_for()
    shot(page, "one")
    page.goto("/runs/")
    page.get_by_text("1 health warning").wait_for()


def test_five_warnings_and_a_closed_one_fit_and_are_accessible(page, run, log):
    fed(page, run, log, FIVE)
    banner = page.get_by_role("status", name="Health")
    banner.get_by_text("5 health warnings").wait_for()
    titles = banner.locator("ul").first.locator("li > div:first-child b").all_inner_texts()
    assert titles == [
        "Agent without nodes", "Held-out falls while reward rises", "All groups equal",
        "Entropy collapse", "Generator and learner apart",
    ]  # fmt: skip
    shot(page, "five")
    banner.get_by_text("1 closed health warning").click()
    banner.get_by_text(SEEN["slow_step"]).wait_for()
    banner.get_by_text("closed at step 2").wait_for()
    for summary in banner.locator("li summary").all():
        summary.click()
    assert accessibility_errors(page, "five warnings") == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 400, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        shot(page, f"five-400-{scheme}")
    page.set_viewport_size({"width": 1280, "height": 900})
    shot(page, "five-dark")


def test_what_is_unfolded_stays_unfolded_while_the_run_goes_on(page, run, log):
    events = with_health(log, {1: [opened("mismatch", 1)], 2: []})
    cut = next(at for at, event in enumerate(events) if event.kind == "health") + 1
    run.feed(events[:cut])
    banner = page.get_by_role("status", name="Health")
    banner.get_by_text("What people change").click()
    head = run.feed(events[cut:])
    page.locator(f'[data-part="stream"][data-shown="{head}"]').wait_for()
    assert banner.get_by_text("loss.importance_correction").is_visible()


def test_the_replay_shows_the_warnings_of_its_moment(page, run, log):
    events = fed(page, run, log, {1: [opened("mismatch", 1)], 2: [closed("mismatch", 2)]})
    banner = page.get_by_role("status", name="Health")
    banner.get_by_text("1 closed health warning").click()
    shot(page, "closed")
    banner.get_by_role("button", name="Show the run when").click()
    seq = next(event.seq for event in events if event.kind == "health")
    page.locator(f'[data-part="stream"][data-shown="{seq}"]').wait_for()
    banner.get_by_text("1 health warning").wait_for()
    page.locator('[data-machine="back"]').click()
    page.wait_for_function(
        f"Number(document.querySelector('[data-part=stream]').dataset.shown) < {seq}"
    )
    banner.wait_for(state="hidden")
    page.get_by_role("button", name="Back to live").click()
    banner.get_by_text("1 closed health warning").wait_for()
