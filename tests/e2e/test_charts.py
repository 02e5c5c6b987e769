"""Tests of the charts page on a real server: live, zoomed with server buckets, readable."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SAMPLE
from tests.helpers.chromium import a_context, drag
from tests.helpers.site import SampleRun
from tests.js.test_resumed import LAST, interrupted_log

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ASKS_AGAIN_MS = 3_000
"""Interval at which the charts page polls for new points."""


@pytest.fixture
def page(window):
    return window("about:blank")


def points_of(page, metric: str, number: int) -> None:
    page.locator(f'[data-metric="{metric}"][data-points="{number}"]').wait_for()


@pytest.mark.large
def test_live_charts_zoom_and_show_the_values_of_their_tables(page, run, log):
    other = SampleRun(SAMPLE)
    other.feed(log)
    page.clock.install()
    page.goto(f"/charts/?run={run.run.pk}")
    page.get_by_text("No data yet").wait_for()
    first = [log.popleft() for _ in range(len(log) // 2)]
    run.feed(first)
    page.clock.fast_forward(ASKS_AGAIN_MS)
    ended = sum(event.kind == "step.end" for event in first)
    points_of(page, "solved", ended)
    run.feed(log)
    page.clock.fast_forward(ASKS_AGAIN_MS)
    points_of(page, "solved", SAMPLE.steps)

    card = page.locator('[data-metric="solved"]')
    card.get_by_text("Table").click()
    rows = card.locator("tbody tr")
    expect(rows.locator("th")).to_have_text(["1", "2", "3"])

    drag(page, card.locator(".u-over"), (0.5, 0.5), (0.8, 0.5))
    page.wait_for_url(re.compile(r"from=1\.\d+&to=2\.\d+"))
    page.locator('[data-metric="solved"][data-drawn-ms][data-points="1"]').wait_for()
    page.reload()
    points_of(page, "solved", 1)
    page.get_by_role("button", name="Reset zoom").click()
    points_of(page, "solved", SAMPLE.steps)
    page.get_by_label("From").fill("2")
    page.get_by_label("to", exact=True).fill("3")
    page.keyboard.press("Enter")
    points_of(page, "solved", 2)
    for end in ("From", "to"):
        page.get_by_label(end, exact=True).fill("")
    page.keyboard.press("Enter")
    points_of(page, "solved", SAMPLE.steps)

    page.get_by_label("Search charts").fill("gradient")
    page.locator('[data-metric="gradient_norm"] canvas').first.wait_for()
    expect(page.locator("[data-metric]")).to_have_count(1)
    page.wait_for_url(re.compile("q=gradient"))
    page.goto(f"/charts/?run={run.run.pk}&run={other.run.pk}&band=ci&q=solved+trees")
    page.get_by_text("demo, 2 seeds").wait_for()
    points_of(page, "solved", 2 * SAMPLE.steps)


def test_runs_are_chosen_in_the_list_and_drawn(page, run, log):
    run.feed(log)
    page.goto("/")
    page.get_by_label("Select demo #1").check()
    page.get_by_role("button", name="Charts").click()
    page.wait_for_url(re.compile(rf"/charts/\?run={run.run.pk}$"))
    page.get_by_role("heading", name="Over the budget of nodes").wait_for()
    page.get_by_role("row", name=re.compile("k = 4")).wait_for()
    chart = page.get_by_role("img", name=re.compile(r"Pass@k over the budget k\. .*interval"))
    expect(chart.locator(".band")).to_have_count(1)
    rows = page.get_by_role("row", name=re.compile("k = ")).count()
    assert rows > 1 and chart.locator(".dot").count() == rows


@pytest.mark.large
def test_the_run_page_draws_the_servers_buckets_of_the_moment_that_it_shows(page, run, log):
    events = list(log)
    ends = [event.seq for event in events if event.kind == "step.end"]
    run.feed(events[: ends[1]])
    page.goto(f"/runs/{run.run.pk}/")
    page.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    points_of(page, "solved", 2)
    run.feed(events[ends[1] :])
    points_of(page, "solved", 3)
    page.locator('[data-metric="share"]').scroll_into_view_if_needed()
    points_of(page, "share", 6)

    page.evaluate(f"location.hash = 'seq={ends[0]}'")
    points_of(page, "share", 2)
    page.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    points_of(page, "solved", 1)
    page.get_by_role("button", name="Back to live").click()
    points_of(page, "solved", 3)

    drag(page, page.locator('[data-metric="solved"] .u-over'), (0.5, 0.5), (0.8, 0.5))
    page.wait_for_url(re.compile(r"from=1\.\d+&to=2\.\d+"))  # by no other chart's scale
    points_of(page, "solved", 1)
    page.wait_for_url(re.compile(r"from=[\d.]+&to=[\d.]+"))
    page.get_by_role("button", name="Reset zoom").click()
    points_of(page, "solved", 3)
    assert "from" not in page.url


def shared_link(page, run, until: str) -> str:
    """The path of a new link to the run, live or frozen at an event."""
    page.goto(f"/runs/{run.run.pk}/shares/")
    page.get_by_label("Frozen at event").fill(until)
    page.get_by_role("button", name="Create link").click()
    return urlsplit(page.locator("pre").inner_text()).path


@pytest.mark.large
def test_a_guest_sees_live_and_frozen_charts_and_nothing_else(page, browser, server, run, faults):
    log = interrupted_log()
    resumed = next(event.seq for event in log if event.kind == "run.resumed")
    steps = sum(event.kind == "step.end" for event in log[: resumed - 1])
    head = run.feed(log[: resumed - 1])
    links = [shared_link(page, run, until) for until in ("", str(head))]
    context = a_context(
        browser,
        viewport={"width": 1280, "height": 900},
        base_url=server.url,
        reduced_motion="reduce",
    )
    requested: set[str] = set()
    context.on("request", lambda request: requested.add(urlsplit(request.url).path))
    live, frozen = context.new_page(), context.new_page()
    for guest, link in zip((live, frozen), links, strict=True):
        faults.watch(guest, server.url)
        guest.bring_to_front()
        guest.goto(link)
        guest.locator('[data-metric="solved"]').scroll_into_view_if_needed()
        points_of(guest, "solved", steps)
    run.feed(log[resumed - 1 :])
    live.bring_to_front()
    points_of(live, "solved", LAST)
    live.evaluate(f"location.hash = 'seq={head}'")
    live.get_by_text("Showing the state at event").wait_for()
    live.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    points_of(live, "solved", steps)
    live.get_by_role("button", name="Back to live").click()
    live.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    points_of(live, "solved", LAST)
    frozen.bring_to_front()
    frozen.reload()
    frozen.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    points_of(frozen, "solved", steps)
    frozen.locator(f'[data-part="stream"][data-seq="{head}"]').wait_for()

    shown = tuple(f"/api/v1{link}" for link in links)
    own = [path for path in requested if not path.startswith(("/static/", "/shared/", *shown))]
    assert own == []
    assert any(event.kind in ("log.line", "system.sample") for event in log)
    assert not live.locator('[data-part="logCard"]').is_visible()
    assert live.get_by_text("CPU utilization").count() == 0
    anchors = live.locator("main a[href]").evaluate_all("all => all.map((a) => a.pathname)")
    assert not [path for path in anchors if path not in links]
    live.goto(f"/runs/{run.run.pk}/")
    live.wait_for_url(re.compile("/sign-in/"))
    context.close()
