"""Tests of the run page on a real server with a growing log: no event lost, no error reported."""

from __future__ import annotations

import itertools
import re
from collections import deque

import pytest

from engine.events.vocabulary import Event
from tests.e2e.conftest import SAMPLE
from tests.helpers.sample_log import sample_events
from tests.helpers.site import SampleRun

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DRAWN = """async () => {
  for (const _ of [1, 2])
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}"""
"""Waits until a key's effect is drawn: in the next frame, the canvas in the one after it."""

LOST = ("WebSocket connection", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET")
"""Chromium's messages about a server that a test has killed."""


@pytest.fixture
def page(window, run):
    """The run page, signed in."""
    return window(f"/runs/{run.run.pk}/")


def ship(run: SampleRun, log: deque, kind: str, times: int = 1) -> int:
    """Ships up to and including the next event of a kind, `times` times; returns the head."""
    batch = []
    while log and times:
        batch.append(log.popleft())
        times -= batch[-1].kind == kind
    return run.feed(batch)


def ship_all(run: SampleRun, log: deque) -> int:
    batch = list(log)
    log.clear()
    return run.feed(batch)


def wait_for_seq(page, seq: int) -> None:
    page.locator(f'[data-part="stream"][data-seq="{seq}"]').wait_for()


def tree_list(page) -> list[str]:
    """The forest as shown by the list."""
    return page.locator('[data-part="treeList"] li').all_text_contents()


def open_first_tree(page) -> None:
    page.locator('[data-part="stage"]').focus()
    page.keyboard.press("Enter")


def test_nodes_appear_while_they_are_written(page, run, log):
    page.emulate_media(reduced_motion="no-preference")  # an open node is animated
    wait_for_seq(page, ship(run, log, "tree.open", SAMPLE.trees))
    assert [line.split(" · ")[1] for line in tree_list(page)] == ["0 nodes"] * SAMPLE.trees
    wait_for_seq(page, ship(run, log, "node.open", SAMPLE.trees))
    assert [line.split(" · ")[1] for line in tree_list(page)] == ["1 node"] * SAMPLE.trees
    wait_for_seq(page, ship(run, log, "tree.close", SAMPLE.trees))
    assert all(line.endswith(("solved", "unsolved")) for line in tree_list(page))
    wait_for_seq(page, ship(run, log, "step.end"))
    page.get_by_text("Step 1 of 3").wait_for()


def test_a_click_opens_a_node_with_its_program_tests_and_credit(page, run, log):
    wait_for_seq(page, ship_all(run, log))
    page.locator('[data-part="canvas"]').click(position={"x": 60, "y": 60})
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Program").wait_for()
    assert "def solve(x):" in panel.locator(".code").inner_text()
    assert panel.locator(".t-keyword").count() >= 2
    assert panel.locator(".test").count() == 3
    assert panel.get_by_text("Advantage").count() == 1
    panel.get_by_role("heading", name="Selection").wait_for()
    assert panel.locator(".density path.area").count() >= 2
    assert "by UCB" in panel.locator(".rules").first.inner_text()
    panel.get_by_role("heading", name="Credit").wait_for()
    assert "update of oak at step" in panel.inner_text() or "update of fern" in panel.inner_text()
    panel.locator("[data-words=tokens] summary").click()
    tokens = panel.locator(".tokens .token")
    tokens.first.wait_for()
    assert "solve" in "".join(tokens.all_inner_texts())
    panel.locator(".tokens").press("ArrowRight")
    assert "log-prob" in panel.locator(".token-read").inner_text()
    panel.get_by_role("button", name="Entropy").click()
    panel.locator(".tokens").press("ArrowRight")
    assert re.search(r"entropy \d.*, ratio \d", panel.locator(".token-read").inner_text())
    panel.locator("[data-words=prompt] summary").click()
    panel.get_by_text("<|user|>Write solve(x)").wait_for()
    panel.get_by_role("button", name="Close node").click()
    panel.wait_for(state="hidden")


@pytest.mark.large
def test_a_refinement_shows_its_changes(page, run, log):
    wait_for_seq(page, ship_all(run, log))
    state = page.request.get(f"/api/v1/runs/{run.run.pk}/state").json()
    deep = [e[3] for e in state["events"] if e[2] == "node.open" and e[3]["parent"] > 0]
    page.evaluate(f"location.hash = 'tree={deep[-1]['tree']}&node={deep[-1]['node']}'")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_text(f"refines node {deep[-1]['parent']}").wait_for()
    panel.locator(".segments button").nth(1).click()
    assert "def solve(x):" in panel.locator(".code").inner_text()
    page.reload()
    panel.get_by_text(f"refines node {deep[-1]['parent']}").wait_for()


@pytest.mark.large
def test_a_link_to_an_older_node_still_opens_it(page, run, log):
    head = ship_all(run, log)
    wait_for_seq(page, head)
    first = next(e.payload for e in sample_events(SAMPLE) if e.kind == "node.close")
    tree = next(e.tree for e in sample_events(SAMPLE) if e.kind == "node.close")
    page.evaluate(f"location.hash = 'tree={tree}&node=1'")
    code = page.locator('[data-part="panel"] .code')
    code.wait_for()
    assert "".join(code.locator(".code-line").all_inner_texts()).split() == first["program"].split()


@pytest.mark.large
def test_arrow_keys_walk_over_a_tree_and_escape_leads_back(page, run, log):
    wait_for_seq(page, ship(run, log, "step.end"))
    open_first_tree(page)
    title = page.locator('[data-part="panel"] h2')
    title.wait_for()
    seen = {title.inner_text()}
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowRight", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        page.evaluate(DRAWN)
        seen.add(title.inner_text())
    assert len(seen) > 1
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.locator('[data-part="back"]').wait_for(state="hidden")


def test_reloading_keeps_everything(page, run, log):
    head = ship(run, log, "step.end", 2)
    wait_for_seq(page, head)
    before = page.locator('[data-part="facts"]').inner_text(), tree_list(page)
    page.reload()
    wait_for_seq(page, head)
    after = page.locator('[data-part="facts"]').inner_text(), tree_list(page)
    assert [part for part in after[0].split("\n") if "Elapsed" not in part] == [
        part for part in before[0].split("\n") if "Elapsed" not in part
    ]
    assert after[1] == before[1]


def beside(page, run, faults, server):
    """The run's charts and its log, each in its own window."""
    opened = []
    for address in (f"/charts/?run={run.run.pk}&q=solved", f"/runs/{run.run.pk}/log/"):
        other = page.context.new_page()
        faults.watch(other, server.url)
        other.goto(address)
        other.get_by_text("live", exact=True).wait_for()
        opened.append(other)
    return opened


@pytest.mark.large
def test_a_killed_server_costs_nothing(page, run, log, server, faults):
    faults.expected = LOST
    wait_for_seq(page, ship(run, log, "node.close", 7))
    charts, lines = beside(page, run, faults, server)
    banner = page.get_by_text("Connection lost")
    with server.killed():
        page.get_by_text("stale since").wait_for()
        banner.wait_for()
        for other in (charts, lines):
            other.get_by_text("reconnecting").wait_for()
        head = ship(run, log, "step.end", 2)
    wait_for_seq(page, head)
    charts.locator('[data-metric="solved"][data-points="2"]').wait_for()
    for other in (charts, lines):
        other.get_by_text("live", exact=True).wait_for()
        other.get_by_text("Connection lost").wait_for(state="hidden")
        other.close()
    page.get_by_text("live", exact=True).wait_for()
    banner.wait_for(state="hidden")
    lost = tree_list(page)
    page.reload()
    wait_for_seq(page, head)
    assert tree_list(page) == lost


@pytest.mark.large
def test_a_finished_run_shows_what_it_achieved(page, run, log):
    wait_for_seq(page, ship_all(run, log))
    run.end("finished")
    page.get_by_role("heading", name="Test result").wait_for()
    page.get_by_role("row", name="fully stated (150)").wait_for()
    page.get_by_text("ended", exact=True).wait_for()
    assert page.get_by_role("button", name="Stop").count() == 0
    for other in ("All charts", "Log"):
        page.get_by_role("link", name=other).click()
        page.get_by_text("ended", exact=True).wait_for()
        page.go_back()


@pytest.mark.large
def test_charts_say_when_their_run_ends(page, run, log):
    ship(run, log, "step.end")
    page.goto(f"/charts/?run={run.run.pk}")
    page.get_by_text("live", exact=True).wait_for()
    run.end("finished")
    page.get_by_text("ended", exact=True).wait_for()
    page.locator(".chosen-runs").get_by_text("Finished").wait_for()


def test_stop_and_resume_are_requested_and_shown(page, run, log):
    ship(run, log, "step.end")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Stopping…").wait_for()
    run.end("stopped")
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Queued", exact=True).wait_for()
    page.get_by_text("Waiting for a worker.").wait_for()


@pytest.mark.large
def test_the_final_test_says_what_it_is_and_how_far(page, run, log):
    last = [log.popleft() for _ in range(len(log) - 2)][-1]
    run.feed(whole := [*itertools.takewhile(lambda one: one.seq < last.seq, sample_events(SAMPLE))])
    wait = {"name": "final test, trained weights", "deadline_seconds": 0.0}
    far = {**wait, "done": 12, "total": 48}
    head = Event(whole[-1].seq + 1, last.time, "run.waiting", None, None, far)
    wait_for_seq(page, run.feed([head]))
    page.get_by_text(
        re.compile(r"Final test, trained weights: 12 of 48 programs evaluated")
    ).wait_for()
    assert page.get_by_text("Waiting", exact=True).count() == 0
    page.get_by_text("final test", exact=True).wait_for()  # the run's current activity


def test_a_failed_run_shows_its_first_cause(page, run, log):
    ship(run, log, "step.end")
    run.end("failed", "agent oak: the model directory lacks tokenizer.json")
    alert = page.get_by_role("alert")
    alert.get_by_text("lacks tokenizer.json").wait_for()
    alert.get_by_role("button", name="Resume", exact=True).wait_for()
