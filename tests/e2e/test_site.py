"""Tests of the site in a real browser: keyboard navigation and live updates."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.e2e.conftest import SAMPLE
from tests.helpers.sample_log import sample_events
from tests.helpers.site import SampleRun

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ASKS_AGAIN_MS = 5_000
"""Interval at which the list polls for changes."""
NO_FOCUS = "nothing"
FRAME = [
    "Skip to content",
    "Grove home",
    "Runs",
    "Compare",
    "Models",
    "Search",
    "Datasets",
    "Reports",
    "Switch between light and dark",
    "Inbox",
    "Account of demo",
]
"""Elements that Tab passes on every page before its content."""
TOOLS = [
    *("Search programs and problems", "Filters", "Score", "Advantage", "Agent", "List"),
    *("Play the log", "Previous node", "Next node", "Position in the log", "First solved"),
    *("Speed", "Live"),
]
"""The controls of the trees, which precede the trees."""
TEAM = ["Solved by", "Repairs by agent"]
"""The tables of the team, which scroll by the keyboard where they do not fit."""
FOCUSED = """() => {
  const at = document.activeElement;
  if (at === document.body) return ["nothing", true];
  const box = at.getBoundingClientRect();
  const ringed = getComputedStyle(at).outlineStyle !== "none" || at.matches("summary");
  const seen = box.width > 0 && box.bottom > 0 && box.top < innerHeight;
  const named = at.ariaLabel ?? at.labels?.[0]?.innerText ?? at.innerText;
  return [named.trim().split("\\n")[0].trim(), ringed && seen];
}"""


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def tab_through(page, most: int = 80) -> list[str]:
    """Names of the elements that Tab reaches until it leaves the page, each visible and marked."""
    names = []
    for _ in range(most):
        page.keyboard.press("Tab")
        name, shown = page.evaluate(FOCUSED)
        if name == NO_FOCUS:
            return names
        assert shown, f"{name} has the focus, but one does not see it"
        names.append(name)
    raise AssertionError(f"no end after {names}")


@pytest.mark.large
def test_a_tree_far_down_shows_itself_and_its_node_on_a_small_screen(window):
    many = SampleRun(replace(SAMPLE, trees=32), "many trees")
    many.feed(sample_events(replace(SAMPLE, trees=32, steps=1)))
    page = window(f"/runs/{many.run.pk}/", 400)
    canvas = page.locator('[data-part="canvas"]')
    canvas.wait_for()
    wait_for_tiles = "e => e.clientHeight > 1000"
    page.wait_for_function(wait_for_tiles, arg=canvas.element_handle())
    canvas.click(position={"x": 50, "y": canvas.bounding_box()["height"] - 40})
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Node").wait_for()
    top = page.locator('[data-part="stage"]').bounding_box()["y"]
    sheet = panel.bounding_box()
    assert 0 <= top < sheet["y"] - 100, "the tree is on the screen, above the node"
    assert sheet["y"] + sheet["height"] <= 900 and fits(page)
    panel.get_by_role("button", name="Close node").click()
    panel.wait_for(state="hidden")


def test_errors_of_a_new_run_are_shown_within_the_screen(window, faults):
    faults.expected = ("Failed to load resource",)
    page = window("/runs/new/", 400)
    changes = "search.nodes_per_tree = 0\nsearch.nodes = 4\nproblems.train = -3"
    page.get_by_label("Overrides (TOML)").fill(changes)
    page.locator('[data-part="start"]').click()
    alert = page.get_by_role("alert").filter(has_text="3 settings are invalid")
    alert.wait_for()
    assert fits(page)
    for words in ("search.nodes_per_tree", "unknown setting", "problems.train"):
        box = alert.get_by_text(words).first.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400, words


def test_tab_leads_through_the_list_in_reading_order(window, run):
    names = tab_through(window("/"))
    states = ["Queued", "Starting", "Running", "Stopping", "Stopped", "Finished", "Failed"]
    requested = ["Search runs by name, tag, project or user", "Tag", "Starred", "Archived"]
    heads = ["Run", "State", "Progress", "Solved", "Started by", "Created"]
    chosen = ["Charts", "Compare", "Star", "Unstar", "Archive", "Tag to add", "Tag"]
    assert names == [
        *(*FRAME, "Export", "New run", "All", *states, *requested, "Columns", "Apply", *heads),
        *("Select demo #1, seed 3", "demo #1", *chosen),
    ]


@pytest.mark.large
def test_tab_leads_through_the_run_page_in_reading_order(window, run, log):
    run.feed(log)
    page = window(f"/runs/{run.run.pk}/")
    card = page.locator('[data-metric="validation.agent"]')
    card.scroll_into_view_if_needed()
    card.locator(".chart-key button").first.wait_for()
    names = tab_through(page)
    trees = next(index for index, name in enumerate(names) if name.startswith("Search trees"))
    assert names[:trees] == [
        *FRAME,
        "More",
        "All charts",
        "Log",
        "Export",
        "Share",
        "Mute",
        "Stop",
        "Add tags and notes",
        "Step 2",
        "Step 3",
        *TOOLS,
    ]
    assert re.match(r"generated-\S+ · 5 nodes", names[trees + 1]), "the list follows the picture"
    assert names[trees + 2 : trees + 4] == TEAM, "the team follows the trees"
    assert re.match(r"oak\s*", names[trees + 4]), "the charts follow the team"


def test_the_skip_link_leads_to_the_content(window, run):
    page = window("/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == ["Export", True]


def open_list(window):
    """The list of runs, with a clock that the test can advance."""
    page = window("about:blank")
    page.clock.install()
    page.goto("/")
    return page


@pytest.mark.large
def test_the_list_keeps_up_and_leaves_the_focus_where_it_is(window, run, log):
    page = open_list(window)
    page.evaluate("window.isTheSamePage = true")
    page.get_by_role("link", name="demo #1").focus()
    page.get_by_text("0 of 3 steps").wait_for()
    run.feed(log)
    page.clock.fast_forward(ASKS_AGAIN_MS)
    page.get_by_text("3 of 3 steps").wait_for()
    SampleRun(replace(SAMPLE, seed=5), "another")
    page.clock.fast_forward(ASKS_AGAIN_MS)
    page.get_by_role("link", name="another #1").wait_for()
    assert page.locator("tbody tr").count() == 2
    assert page.evaluate(FOCUSED) == ["demo #1", True]
    assert page.evaluate("window.isTheSamePage")


def test_the_first_run_appears_on_an_empty_list(window, run):
    from webapp.experiments.models import Run

    Run.objects.all().delete()
    page = open_list(window)
    page.get_by_role("heading", name="No runs yet").wait_for()
    SampleRun(SAMPLE, "first")
    page.clock.fast_forward(ASKS_AGAIN_MS)
    page.get_by_role("link", name="first #1").wait_for()
    assert page.get_by_text("No runs yet").count() == 0
