"""Tests of chart axes: steps, time, tokens or nodes; log axes; smoothing; live or frozen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SAMPLE
from tests.helpers.large import large_but

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURE = "card => card.querySelector('canvas').toDataURL()"


@pytest.fixture
def ends(log):
    """Payloads of the steps that ended, in order."""
    return [event.payload for event in log if event.kind == "step.end"]


@pytest.fixture
def page(window, run, log):
    run.feed(log)
    page = window(f"/charts/?run={run.run.pk}&q=reward")
    return page


def card(page, points: int):
    page.locator(f'[data-metric="reward"][data-points="{points}"]').wait_for()
    return page.locator('[data-metric="reward"]')


def table(page, points: int) -> tuple[str, list[str], list[str]]:
    """(axis name, axis positions, values of the first line), as in the chart's table."""
    one = card(page, points)
    if one.locator("details[open]").count() == 0:
        one.get_by_text("Table").click()
    axis = one.locator("thead th").first.inner_text()
    places = one.locator("tbody th").all_inner_texts()
    values = one.locator("tbody tr td:nth-child(2)").all_inner_texts()
    return axis, places, values


LINES = 1 + len(SAMPLE.agents)
POINTS = LINES * SAMPLE.steps


@pytest.mark.parametrize("axis", large_but(["tokens"], ["tokens", "nodes"]))
def test_over_tokens_or_nodes_a_step_is_plotted_at_the_cumulative_spend(page, ends, axis):
    assert table(page, POINTS)[:2] == ("step", ["1", "2", "3"])
    page.get_by_label("X axis").select_option(axis)
    page.wait_for_url(re.compile(f"x={axis}"))
    spent = [sum(end[axis] for end in ends[: count + 1]) for count in range(len(ends))]
    rows = card(page, POINTS).locator("tbody th")
    expect(rows).to_have_text([str(one) for one in spent])
    assert table(page, POINTS)[0] == axis
    page.reload()
    assert table(page, POINTS)[:2] == (axis, [str(one) for one in spent]), "the address keeps it"


@pytest.mark.large
def test_a_smoothed_line_is_the_moving_average_that_is_corrected_for_its_start(page, ends):
    agent = SAMPLE.agents[0]
    rewards = [end["reward_by_agent"][agent] for end in ends]
    raw = table(page, POINTS)[2]
    expect(card(page, POINTS).locator("thead th").nth(1)).to_contain_text(agent)
    assert raw == [shown(reward) for reward in rewards]
    page.get_by_label("Smoothing").fill("0.6")
    total = weight = 0.0
    expected = []
    for reward in rewards:
        total, weight = 0.6 * total + 0.4 * reward, 0.6 * weight + 0.4
        expected.append(shown(total / weight))
    assert expected != raw
    cells = card(page, POINTS).locator("tbody tr td:nth-child(2)")
    expect(cells).to_have_text(expected)
    page.get_by_label("Smoothing").fill("0")
    expect(cells).to_have_text(raw)


def shown(share: float) -> str:
    return f"{100 * share:.1f} %"


@pytest.mark.large
@pytest.mark.parametrize("name", large_but(["Log y"], ["Log x", "Log y"]))
def test_a_log_axis_is_another_picture_of_the_same_numbers(page, name):
    linear = card(page, POINTS).evaluate(PICTURE)
    numbers = table(page, POINTS)
    button = page.get_by_role("button", name=name)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(
        f"([card, before]) => ({PICTURE})(card) !== before",
        arg=[card(page, POINTS).element_handle(), linear],
    )
    assert table(page, POINTS) == numbers
    button.click()
    page.wait_for_function(
        f"([card, before]) => ({PICTURE})(card) === before",
        arg=[card(page, POINTS).element_handle(), linear],
    )


TWO_FRAMES = """canvas => new Promise((done) => {
  const first = canvas.toDataURL();
  let frames = 0;
  const look = () => {
    frames += 1;
    if (canvas.toDataURL() !== first) done(true);
    else if (frames > 60) done(false);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


@pytest.mark.large
@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_an_open_node_pulses_unless_motion_is_reduced(window, run, log, motion, moves):
    events = list(log)
    last = max(index for index, event in enumerate(events) if event.kind == "node.open")
    head = run.feed(events[: last + 1])
    page = window(f"/runs/{run.run.pk}/", reduced_motion=motion)
    page.locator(f'[data-part="stream"][data-seq="{head}"]').wait_for()
    page.locator('[data-part="pill"][data-state="running"]').wait_for()
    page.evaluate(f"location.hash = 'tree={events[last].tree}&node={events[last].node}'")
    page.locator('[data-part="panel"]').get_by_role("heading", name="Node").wait_for()
    breathes = page.evaluate(
        "getComputedStyle(document.querySelector('[data-part=pill]'), '::before').animationName"
    )
    assert breathes == ("breathe" if moves else "none")
    assert page.locator('[data-part="canvas"]').evaluate(TWO_FRAMES) is moves
