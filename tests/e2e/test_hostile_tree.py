"""Tests that the page stays responsive on an external log that no engine of Grove writes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from engine.events.vocabulary import Event
from tests.e2e.conftest import SAMPLE
from tests.helpers.sample_log import sample_events

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

NODES = 10_000
MOST_SECONDS = 8.0
"""CPU time that the page's own thread may take for all of it: a walk that does not end, or is
quadratic in the nodes, takes more. It takes 1 s."""
HUGE = "x" * 200_000 + "\n" + "y\n" * 2_000
PARENTS = {1: 1, 2: 3, 3: 2, 4: 99_999_999, 5: 5}
"""Parents of the first nodes: themselves, each other, and one that does not exist."""


def hostile_log() -> list[Event]:
    """One tree of NODES nodes with cycles, missing parents and huge texts."""
    events = []
    for event in sample_events(SAMPLE):
        events.append(event)
        if event.kind == "tree.open":
            break
    tree = events[-1].tree
    events[-1].payload["statement"] = HUGE
    opened = next(event for event in sample_events(SAMPLE) if event.kind == "node.open")
    closed = next(event for event in sample_events(SAMPLE) if event.kind == "node.close")
    for node in range(1, NODES + 1):
        parent = PARENTS.get(node, node - 1 if node % 3 else node // 2)
        payload = {**opened.payload, "parent": parent, "depth": node}
        events.append(Event(0, opened.time, "node.open", tree, node, payload))
        text = HUGE if node == NODES else closed.payload["program"]
        payload = {**closed.payload, "program": text, "error": text[:100_000]}
        if node % 100 == 0:
            events.append(Event(0, closed.time, "node.close", tree, node, payload))
    return [
        Event(seq, one.time, one.kind, one.tree, one.node, one.payload)
        for seq, one in enumerate(events, start=1)
    ]


def test_a_hostile_tree_is_shown_and_the_page_stays_responsive(window, run):
    for first in range(0, len(log := hostile_log()), 1_000):
        head = run.feed(log[first : first + 1_000])
    page = window("about:blank")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"/runs/{run.run.pk}/")
    page.locator(f'[data-part="stream"][data-seq="{head}"]').wait_for()
    stage = page.locator('[data-part="stage"]')
    stage.focus()
    page.keyboard.press("Enter")
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Fit").click()
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Node").first.wait_for()
    page.get_by_role("button", name="List", exact=True).click()
    expect(page.locator('[data-part="treeList"] [role="treeitem"]').first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    (seconds,) = (one["value"] for one in metrics if one["name"] == "TaskDuration")
    assert 0 < seconds < MOST_SECONDS
