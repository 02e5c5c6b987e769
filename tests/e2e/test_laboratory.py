"""Tests of the run page's tools: earlier moments, filters, a tree's view, the list, the team."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SAMPLE
from tests.helpers.chromium import drag

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def events(log):
    return list(log)


@pytest.fixture
def page(window, run, events):
    """The page of a run whose log is complete."""
    head = run.feed(events)
    page = window(f"/runs/{run.run.pk}/", 1600, 1000)
    page.locator(f'[data-part="stream"][data-seq="{head}"]').wait_for()
    return page


def shown(page, seq: int):
    page.locator(f'[data-part="stream"][data-shown="{seq}"]').wait_for()


def rows(page) -> list[str]:
    return page.locator('[data-part="treeList"] li').all_text_contents()


def fragment(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).fragment)


def tool(page, name: str):
    return page.locator(f'[data-tool="{name}"]')


def test_the_view_at_an_event_shows_no_later_event(page, events):
    closes = [event for event in events if event.kind == "node.close"]
    fifth = closes[4]
    page.evaluate(f"location.hash = 'tree={fifth.tree}&node={fifth.node}&seq={fifth.seq}'")
    shown(page, fifth.seq)
    page.get_by_text("Showing the state at event").wait_for()
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name=f"Node {fifth.node} by").wait_for()
    assert "pending until the step's trees are credited" in panel.inner_text()
    trees = [line.split(" · ")[1] for line in rows(page) if not line.startswith("Node ")]
    known = [e for e in events if e.kind == "node.open" and e.seq <= fifth.seq]
    assert sum(int(nodes.split()[0]) for nodes in trees) == len(known)
    assert page.get_by_role("heading", name="Test result").count() == 0
    page.reload()
    shown(page, fifth.seq)
    assert fragment(page)["seq"] == [str(fifth.seq)], "a link leads to the moment"
    page.get_by_role("button", name="Back to live").click()
    shown(page, events[-1].seq)
    assert "seq" not in fragment(page)
    panel.get_by_text("Used in the update of").wait_for()


@pytest.mark.large
def test_one_steps_by_node_scrubs_jumps_and_plays(page, events):
    closes = [event.seq for event in events if event.kind == "node.close"]
    page.get_by_role("button", name="First solved").click()
    first = next(e.seq for e in events if e.kind == "node.close" and e.payload["score"] == 1)
    shown(page, first)
    page.get_by_role("button", name="Next node").click()
    shown(page, next(seq for seq in closes if seq > first))
    page.get_by_role("button", name="Previous node").click()
    shown(page, first)
    scrub = page.get_by_label("Position in the log")
    scrub.fill("60")
    shown(page, 60)
    page.locator('[data-machine="speed"]').select_option("64")
    page.get_by_role("button", name="Play the log").click()
    shown(page, events[-1].seq)
    page.get_by_role("button", name="Play the log").wait_for()


@pytest.mark.large
def test_a_step_of_long_ago_comes_back_with_its_trees(page, events):
    tool(page, "menuLabel").click()
    tool(page, "step").fill("1")
    tool(page, "step").press("Enter")
    page.get_by_role("heading", name="Search trees of step 1").wait_for()
    problems = [e.payload for e in events if e.kind == "tree.open"]
    first = [one["problem"] for one in problems if one["step"] == 1]
    expect(page.locator('[data-part="treeList"] li')).to_have_count(len(first))
    expect(page.locator('[data-part="treeList"] li').first).to_contain_text(first[0])
    assert all("solved" in line for line in rows(page))
    assert "step=1" in page.url
    tool(page, "step").fill("1-3")
    tool(page, "step").press("Enter")
    expect(page.locator('[data-part="treeList"] li')).to_have_count(len(problems))
    page.locator('[data-part="current"]').click()
    expect(page.locator('[data-part="treeList"] li')).to_have_count(SAMPLE.trees)
    assert "step=" not in page.url


@pytest.mark.large
def test_filters_narrow_the_forest_and_stay_in_the_address(page, events):
    tool(page, "q").fill("return x")
    tool(page, "matchCount").get_by_text("20 of 20 nodes in 4 of 4 trees").wait_for()
    tool(page, "menuLabel").click()
    tool(page, "agent").select_option("fern")
    tool(page, "score").select_option("passed")
    last = {e.tree for e in events if e.kind == "tree.open" and e.payload["step"] == SAMPLE.steps}
    opened = {(e.tree, e.node): e.payload for e in events if e.kind == "node.open"}
    expected = [
        e
        for e in events
        if e.kind == "node.close" and e.tree in last and e.payload["score"] == 1
        and opened[e.tree, e.node]["agent"] == "fern"
    ]  # fmt: skip
    text = f"{len(expected)} of 20 nodes in {len({e.tree for e in expected})} of 4 trees"
    tool(page, "matchCount").get_by_text(text).wait_for()
    assert len(rows(page)) == len({e.tree for e in expected})
    page.reload()
    tool(page, "matchCount").get_by_text(text).wait_for()
    assert fragment(page) == {"agent": ["fern"], "score": ["passed"], "q": ["return x"]}
    tool(page, "clear").click()
    expect(tool(page, "matchCount")).to_have_text("")
    expect(page.locator('[data-part="treeList"] li')).to_have_count(SAMPLE.trees)
    tool(page, "q").fill("nothing has this")
    page.get_by_text("No matching nodes").wait_for()


def preorder(events, tree: int) -> list[int]:
    """Nodes of the tree in list order: each before its children, siblings by id."""
    below: dict[int, list[int]] = {}
    for event in events:
        if event.kind == "node.open" and event.tree == tree:
            below.setdefault(event.payload["parent"], []).append(event.node)

    def under(parent: int) -> list[int]:
        return [one for node in below.get(parent, []) for one in (node, *under(node))]

    return under(0)


@pytest.mark.large
def test_the_list_is_walked_with_keys(page, events):
    trees = [e.tree for e in events if e.kind == "tree.open" and e.payload["step"] == SAMPLE.steps]
    nodes = preorder(events, trees[1])
    tool(page, "list").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    tool(page, "list").press("Enter")
    tree = page.get_by_role("tree")
    tree.locator('[tabindex="0"]').focus()

    def pressed(key: str, leads_to: str) -> None:
        page.keyboard.press(key)
        page.wait_for_function("at => document.activeElement.dataset.key === at", arg=leads_to)

    pressed("ArrowDown", str(trees[1]))
    pressed("ArrowRight", str(trees[1]))
    expect(tree.get_by_role("treeitem", expanded=True)).to_have_attribute("data-key", str(trees[1]))
    pressed("ArrowRight", f"{trees[1]}/{nodes[0]}")
    pressed("ArrowDown", f"{trees[1]}/{nodes[1]}")
    pressed("Enter", f"{trees[1]}/{nodes[1]}")
    chosen = tree.locator('[role="treeitem"][aria-selected="true"]')
    expect(chosen).to_have_attribute("data-key", f"{trees[1]}/{nodes[1]}")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name=f"Node {nodes[1]} by").wait_for()
    pressed("End", str(trees[-1]))
    pressed("Home", str(trees[0]))
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem", expanded=True)).to_have_count(0)


@pytest.mark.large
def test_a_tree_is_zoomed_moved_folded_and_fitted(page, events):
    opened = [e for e in events if e.kind == "node.open"]
    parent = next(e for e in reversed(opened) if e.payload["parent"])
    page.evaluate(f"location.hash = 'tree={parent.tree}&node={parent.payload['parent']}'")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("button", name="Collapse").click()
    panel.get_by_role("button", name="Unfold").wait_for()
    panel.get_by_role("button", name=f"{parent.node} ", exact=False).first.click()
    panel.get_by_role("heading", name=f"Node {parent.node} by").wait_for()
    panel.get_by_role("button", name=f"node {parent.payload['parent']} ").click()
    panel.get_by_role("button", name="Collapse").wait_for()
    canvas = page.locator('[data-part="canvas"]')
    tool(page, "zoomIn").click()
    page.locator('[data-part="canvas"][data-drags]').wait_for()
    picture = "e => e.toDataURL()"
    before = canvas.evaluate(picture)
    drag(page, canvas, (0.4, 0.4), (0.45, 0.5))
    page.wait_for_function(
        f"([e, was]) => ({picture})(e) !== was", arg=[canvas.element_handle(), before]
    )
    panel.get_by_role("heading", name=f"Node {parent.payload['parent']} by").wait_for()
    page.locator('[data-part="stage"]').press("0")
    page.locator('[data-part="canvas"]:not([data-drags])').wait_for()


@pytest.mark.large
def test_node_colours_show_credit_and_the_team_panel_shows_roles(page, events):
    legend = page.locator('[data-part="legend"]')
    page.get_by_role("button", name="Advantage", exact=True).click()
    legend.get_by_text("advantage 0").wait_for()
    assert legend.get_by_text("sandbox failure").count() == 0
    team = page.locator('[data-part="team"]')
    last = {e.tree for e in events if e.kind == "tree.open" and e.payload["step"] == SAMPLE.steps}
    solved = sum(e.payload["solved"] for e in events if e.kind == "tree.close" and e.tree in last)
    assert f"{len(last)} trees of step {SAMPLE.steps}, {solved} solved" in team.inner_text()
    ratio = r"Right: \d+ of \d+ repairs?, \d+ of \d+ fresh answers?(: a repair is right \d.*|\.)"
    assert re.search(ratio, team.inner_text())
    nodes = [int(cell) for cell in team.locator("tbody tr td:nth-child(2)").all_inner_texts()[:2]]
    assert sum(nodes) == SAMPLE.trees * SAMPLE.nodes


@pytest.mark.large
def test_two_trees_are_compared_on_one_axis_of_nodes(page, run, events):
    page.locator('[data-part="stage"]').focus()
    page.keyboard.press("Enter")
    page.locator('[data-part="compare"]').click()
    page.get_by_role("heading", name="Best so far over the budget").wait_for()
    page.get_by_text("No other tree of this problem").wait_for()
    first, last = (e for e in events if e.kind == "tree.open" and e.seq in (ends(events)))
    places = "&".join(f"tree={run.run.pk}:{e.tree}" for e in (first, last))
    page.goto(f"/compare/trees/?{places}")
    page.get_by_text("These trees are of different problems").wait_for()
    rows_ = page.locator('[data-part="figures"] tbody tr')
    expect(page.locator(".tree-pair canvas")).to_have_count(2)
    expect(page.locator(".curve")).to_have_count(2)
    closed = {(e.tree, e.node): e.payload for e in events if e.kind == "node.close"}
    tokens = sum(p["tokens"] for (tree, _), p in closed.items() if tree == first.tree)
    expect(rows_.nth(4).locator("td").first).to_contain_text(f"{tokens:,}")
    page.locator('[data-part="budget"]').focus()
    page.keyboard.press("Home")
    page.get_by_text("the first 0 nodes of each").wait_for()
    expect(rows_.first.locator("td")).to_have_text(["not solved", "not solved"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def ends(events) -> tuple[int, int]:
    """The seqs of the first and the last tree."""
    opened = [e.seq for e in events if e.kind == "tree.open"]
    return opened[0], opened[-1]
